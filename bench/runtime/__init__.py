"""The runtime against its peers: one server that replays prepared bytes, and contenders in processes of their own."""
