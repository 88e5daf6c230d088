"""`trunkline import` and `trunkline export`: sessions from elsewhere, and to elsewhere."""
