"""One file a quantity: until, rewards, long-run averages, transient probabilities, repeated reachability."""
