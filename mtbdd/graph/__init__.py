"""Graph questions answered on sets of states: reachability, probability 0 and 1, components."""
