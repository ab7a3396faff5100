package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// StoredVersion is the version of the layout of stored weights: of their file, and of all packed forms. It must be
// raised when one changes, which TestStoredVersion notices.
const StoredVersion = 4

// ErrStored means that stored weights are damaged, or of another model.
var ErrStored = errors.New("invalid stored weights")

// A stored file is a head, a JSON header, and payloads at multiples of storedAlign.
const (
	storedMagic = "mcompress weights\n"
	storedAlign = 64
	storedHead  = len(storedMagic) + 8 + sha256.Size // magic, size of the header, digest of the header
)

// crcTable is that of CRC-32C, for which CPUs have an instruction.
var crcTable = crc32.MakeTable(crc32.Castagnoli)

// storedHeader is everything of stored weights but the payloads.
type storedHeader struct {
	Key       string
	Steps     []*storedStep
	Constants []storedConstant
	Program   []byte // digest of the loaded program
	Payloads  []storedSpan
}

// A storedStep is what loading made of one step.
type storedStep struct {
	Label  string
	Folded []storedOutput `json:",omitempty"` // constants that replace the step
	// packed constant that replaces the step; without numbers if no run uses it
	Packed   *storedValue    `json:",omitempty"`
	Again    bool            `json:",omitempty"` // it is folded or prepared again
	Prepared *storedPrepared `json:",omitempty"`
}

// A storedOutput is the type of an output of a folded step; zero if it is absent.
type storedOutput struct {
	DType ir.DType
	Shape []int64
}

// A storedValue is a value as the numbers of a storedCodec.
type storedValue struct{ Numbers []int64 }

// storedPrepared is an op.Prepared whose State has type number Type of the operator's States.
type storedPrepared struct {
	Type int
	storedValue
	Bytes int64
	Drops []int
}

// A storedConstant is the data of a slot of a program.
type storedConstant struct{ Program, Slot, Payload int }

// A storedSpan is a payload: its distance from the end of the header, and its checksum, which begins with the key, so
// that payloads of another model are none of this one, whatever the header says.
type storedSpan struct {
	At, Size int64
	CRC      uint32
}

// payloads are the payloads that are to be written, or those of a file.
type payloads struct {
	data [][]byte
	at   map[*byte]int // of those to be written
}

// add returns the index of a payload.
func (p *payloads) add(b []byte) int {
	// A constant that subgraphs use is in a slot of each of their programs, and is stored once.
	if i, ok := p.at[&b[0]]; ok && len(p.data[i]) == len(b) {
		return i
	}
	p.data = append(p.data, b)
	p.at[&b[0]] = len(p.data) - 1
	return len(p.data) - 1
}

// get returns payload i, which must have this size.
func (p *payloads) get(i int, size int64) ([]byte, error) {
	if i < 0 || i >= len(p.data) || int64(len(p.data[i])) != size || size == 0 {
		return nil, fmt.Errorf("%w: payload %d has not %d bytes", ErrStored, i, size)
	}
	return p.data[i], nil
}

// write writes header and payloads.
func (h *storedHeader) write(w io.Writer, all *payloads) error {
	at := int64(0)
	for _, b := range all.data {
		h.Payloads = append(h.Payloads, storedSpan{at, int64(len(b)), h.checksum(b)})
		at = roundUp(at+int64(len(b)), storedAlign)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	head := binary.LittleEndian.AppendUint64([]byte(storedMagic), uint64(len(text)))
	sum := sha256.Sum256(text)
	head = append(append(head, sum[:]...), text...)
	if err := writePadded(w, head); err != nil {
		return err
	}
	for _, b := range all.data {
		if err := writePadded(w, b); err != nil {
			return err
		}
	}
	return nil
}

func (h *storedHeader) checksum(payload []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(h.Key), crcTable), crcTable, payload)
}

func writePadded(w io.Writer, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	size := int64(len(b))
	_, err := w.Write(make([]byte, roundUp(size, storedAlign)-size))
	return err
}

func roundUp(n, multiple int64) int64 { return (n + multiple - 1) / multiple * multiple }

// readStored reads stored weights of this key, whose payloads it does not copy, and verifies every byte.
func readStored(data []byte, key string, pool *op.Pool) (*storedHeader, *payloads, error) {
	if len(data) < storedHead || !bytes.HasPrefix(data, []byte(storedMagic)) {
		return nil, nil, fmt.Errorf("%w: not such a file", ErrStored)
	}
	size, sum := binary.LittleEndian.Uint64(data[len(storedMagic):]), data[storedHead-sha256.Size:storedHead]
	if size > uint64(len(data)-storedHead) {
		return nil, nil, fmt.Errorf("%w: incomplete", ErrStored)
	}
	text := data[storedHead:][:size]
	if got := sha256.Sum256(text); !bytes.Equal(got[:], sum) {
		return nil, nil, fmt.Errorf("%w: damaged header", ErrStored)
	}
	h := &storedHeader{}
	if err := bounded.JSON(text, h); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrStored, err)
	}
	if h.Key != key {
		return nil, nil, fmt.Errorf("%w: of another model, version or set of options", ErrStored)
	}
	all, err := h.verified(data[min(int64(len(data)), roundUp(int64(storedHead)+int64(size), storedAlign)):], pool)
	return h, all, err
}

// verified returns the payloads, of which data consist, after comparing their checksums.
func (h *storedHeader) verified(data []byte, pool *op.Pool) (*payloads, error) {
	all := &payloads{data: make([][]byte, len(h.Payloads))}
	wrong := make([]bool, len(h.Payloads))
	for i, s := range h.Payloads {
		if s.At < 0 || s.Size < 0 || s.At%storedAlign != 0 || s.At > int64(len(data)) ||
			s.Size > int64(len(data))-s.At {
			return nil, fmt.Errorf("%w: incomplete", ErrStored)
		}
		all.data[i] = data[s.At:][:s.Size:s.Size]
	}
	pool.For(len(wrong), func(i int) { wrong[i] = h.checksum(all.data[i]) != h.Payloads[i].CRC })
	for _, w := range wrong {
		if w {
			return nil, fmt.Errorf("%w: damaged", ErrStored)
		}
	}
	return all, nil
}
