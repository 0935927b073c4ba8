"""What stands at a border, for agent and gateway alike: tokens, body budget, judged body, refusals."""
