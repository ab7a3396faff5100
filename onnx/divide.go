package onnx

import "github.com/mcompress/mcompress/ir"

// unitOf is what computes the payload of t, all of whose outputs are in one data file: its recipe, or t itself.
func unitOf(t *ir.Tensor) any {
	if o, ok := t.Source.(ir.Output); ok {
		return o.Of
	}
	return t
}

func newDataFile(name string) *dataFile { return &dataFile{name: name, at: map[*ir.Tensor]int64{}} }

// divide divides the payloads of d into up to n files, by their units. Units are in the order of d and have about the
// same cost in each file: the bytes that are written and read for them.
func (d *dataFile) divide(n int) map[any]int {
	cost, total := map[any]int64{}, int64(0)
	var order []any
	for _, p := range d.parts {
		u := unitOf(p.tensor)
		c, known := cost[u]
		if !known {
			order = append(order, u)
			c = bytesRead(p.tensor, map[*ir.Tensor]bool{})
			total += c
		}
		cost[u] = c + p.tensor.Bytes()
		total += p.tensor.Bytes()
	}
	of, file, last, done := map[any]int{}, -1, -1, int64(0)
	for _, u := range order {
		// Of n equal intervals, that of the middle of the unit. A large unit may leave intervals empty.
		if at := int(float64(n) * (float64(done) + float64(cost[u])/2) / float64(max(1, total))); at != last {
			file, last = file+1, at
		}
		of[u] = min(file, n-1)
		done += cost[u]
	}
	return of
}

// bytesRead are the bytes that computing t reads, those of each tensor once.
func bytesRead(t *ir.Tensor, seen map[*ir.Tensor]bool) (n int64) {
	o, ok := t.Source.(ir.Output)
	if !ok {
		return t.Bytes()
	}
	for _, in := range o.Of.In {
		if !seen[in] {
			seen[in] = true
			n += bytesRead(in, seen)
		}
	}
	return n
}
