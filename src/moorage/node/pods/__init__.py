"""Pods: one supervisor and one sandbox for each container, kept by one worker for each pod."""
