package pack

import (
	"errors"
	"sync"
)

// cached is the number of decoded chunks that an archive keeps.
const cached = 16

// A cache has the contents of the chunks that were read last.
type cache struct {
	mu       sync.Mutex
	entries  []*entry // the one used last is at the end
	chunkers sync.Pool
}

// An entry is the content of a chunk, once ready is done.
type entry struct {
	number  int
	ready   sync.Once
	content []byte
	err     error
}

// entry returns the entry of a chunk, which may not be ready.
func (c *cache) entry(number int) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.entries {
		if e.number == number {
			c.entries = append(append(c.entries[:i], c.entries[i+1:]...), e)
			return e
		}
	}
	e := &entry{number: number}
	if len(c.entries) == cached {
		c.entries = append(c.entries[:0], c.entries[1:]...)
	}
	c.entries = append(c.entries, e)
	return e
}

// content returns the content of a record, which must not be changed.
func (a *Archive) content(number int) ([]byte, error) {
	e := a.cache.entry(number)
	e.ready.Do(func() { e.content, e.err = a.decode(number) })
	return e.content, e.err
}

// decode reads and decodes a record.
func (a *Archive) decode(number int) ([]byte, error) {
	r := a.records[number]
	h, payload, err := a.record(r.at, r.at+headerSize+int64(r.packed))
	if err != nil {
		return nil, err
	}
	if (chunkRecord{h.kind, h.packed, h.raw, h.gap}) != r.chunkRecord {
		return nil, errors.New("a record differs from the index")
	}
	if h.kind == referenceRecord {
		return a.follow(number, h, payload)
	}
	c, _ := a.cache.chunkers.Get().(*chunker)
	if c == nil {
		c = newChunker(small(a.Index.Files))
	}
	defer a.cache.chunkers.Put(c)
	raw := make([]byte, h.raw)
	if h.predictor == baseValue {
		return nil, errPlace
	}
	if err := c.decode(h.form, raw, payload); err != nil {
		return nil, err
	}
	if checksum(raw) != h.sum {
		return nil, errDigest
	}
	return raw, nil
}

// follow returns the content that a reference denotes.
func (a *Archive) follow(number int, h header, payload []byte) ([]byte, error) {
	to, err := parseReference(payload)
	if err != nil {
		return nil, err
	}
	if to >= number || a.records[to].kind != dataRecord || a.records[to].raw != h.raw {
		return nil, errReference
	}
	raw, err := a.content(to)
	if err == nil && checksum(raw) != h.sum {
		err = errDigest
	}
	return raw, err
}
