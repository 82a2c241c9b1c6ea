"""One file a quantity: reachability, rewards, long-run averages, transient probabilities."""
