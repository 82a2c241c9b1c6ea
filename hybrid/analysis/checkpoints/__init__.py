"""What long checks leave in a folder, so that another run can go on where they were."""
