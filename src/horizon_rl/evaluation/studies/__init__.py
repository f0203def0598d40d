"""Studies of training runs from their files: needs neither torch nor MuJoCo."""
