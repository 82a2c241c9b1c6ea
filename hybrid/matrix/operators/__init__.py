"""What methods run on: products and steps with compressed and explicit matrices, choices among them."""
