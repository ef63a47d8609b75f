"""Recipes: what a point runs on the cluster, resolved and read without a cluster."""
