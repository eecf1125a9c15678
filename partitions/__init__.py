"""One partition's log on disk, its leader and follower state machines, ISR and high watermark."""
