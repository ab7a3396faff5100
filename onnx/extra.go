package onnx

// A chunk is a run of file bytes kept for writing back: short ones are copied,
// long ones stay where they are.
type chunk struct {
	lit    []byte
	src    *source
	off, n int64
	doc    bool // documentation: see StripMetadata
}

// keepInMemory is the size up to which a field that rides along is copied.
const keepInMemory = 4 << 10

// An extra is the fields of a message that the ir does not represent, tags included.
type extra []chunk

// addField appends the field f as it is in the file.
func (c *cursor) addField(x *extra, f field) error { return c.addChunk(x, f, false) }

// addDoc is add of a doc_string or an entry of metadata_props below the model.
func (c *cursor) addDoc(x *extra, f field) error {
	c.metadata += f.end - f.at
	return c.addChunk(x, f, true)
}

func (c *cursor) addChunk(x *extra, f field, doc bool) error {
	n := f.end - f.at
	if n > keepInMemory {
		*x = append(*x, chunk{src: c.src, off: f.at, n: n, doc: doc})
		return nil
	}
	b, err := c.bytes(f.at, f.end)
	if err != nil {
		return err
	}
	// Adjacent fields become one chunk: most messages have a few small ones that are carried along.
	if k := len(*x); k > 0 && (*x)[k-1].src == nil && (*x)[k-1].doc == doc {
		(*x)[k-1].lit = append((*x)[k-1].lit, b...)
		return nil
	}
	*x = append(*x, chunk{lit: b, doc: doc})
	return nil
}

// text reads a string field into s. An explicitly empty one is kept in x, as its
// presence would be lost otherwise.
func (c *cursor) text(s *string, x *extra, f field) error {
	if f.len() == 0 {
		return c.addField(x, f)
	}
	var err error
	*s, err = c.string(f)
	return err
}
