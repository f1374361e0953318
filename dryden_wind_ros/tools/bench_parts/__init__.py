"""Parts of the bench, and the processes they need."""
