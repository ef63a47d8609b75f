"""Renderers: findings and points as text, JSON, GitHub annotations, markdown."""
