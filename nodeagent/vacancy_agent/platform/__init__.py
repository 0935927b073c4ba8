"""What differs between operating systems, behind seams that look the same from above."""
