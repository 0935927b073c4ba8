"""HTTP/1.1 both ways on httptools: listener, upstream pool, pump. Knows nothing of lending."""
