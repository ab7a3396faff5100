package solve

// HQQ rounds as Nearest does.
func HQQ(c *Codes, w []float32) { Nearest(c, w, true) }
