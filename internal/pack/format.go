package pack

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/untrusted"
)

// The container begins with magic and version, and ends with the offset of the index record and trailer.
const (
	magic   = "\x89MCZ\r\n\x1a\n"
	trailer = "MCZindex"
	version = 1

	prologueSize = len(magic) + 4
	trailerSize  = 8 + len(trailer)
	headerSize   = 20
)

// Limits of records: a reader allocates no more for a header that is wrong.
const (
	maxChunk  = 1 << 20 // uncompressed bytes of a chunk
	maxGap    = 64 << 10
	maxHead   = 1 << 20
	maxIndex  = 32 << 20
	maxChunks = 1 << 21
	maxRatio  = 1024 // uncompressed bytes per stored byte, which padding guarantees
)

// A kind is the kind of a record.
type kind byte

const (
	headRecord      kind = 'H' // names and sizes of the files, as JSON (zlib)
	skeletonRecord  kind = 'S' // bytes between tensors, for the gaps of the following chunks
	dataRecord      kind = 'D' // bytes of a tensor, or of a long stretch between tensors
	referenceRecord kind = 'R' // the bytes of an earlier data record
	indexRecord     kind = 'I' // the index as JSON (zlib)
)

// A header precedes the payload of every record.
type header struct {
	kind kind
	form
	packed int    // bytes of the payload
	raw    int    // bytes of the content
	sum    uint32 // CRC-32C of the content
	gap    int    // bytes of the skeleton before the content
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func (h header) append(b []byte) []byte {
	b = append(b, byte(h.kind), byte(h.predictor), h.width, byte(h.layout))
	for _, v := range []uint32{uint32(h.packed), uint32(h.raw), h.sum, uint32(h.gap)} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// parseHeader returns the header in b. Its sizes are within the limits.
func parseHeader(b []byte) (header, error) {
	field := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	h := header{
		kind:   kind(b[0]),
		form:   form{predictor(b[1]), b[2], layout(b[3])},
		packed: field(1),
		raw:    field(2),
		sum:    uint32(field(3)),
		gap:    field(4),
	}
	limit := maxChunk
	switch h.kind {
	case headRecord:
		limit = maxHead
	case indexRecord:
		limit = maxIndex
	case skeletonRecord, dataRecord, referenceRecord:
	default:
		return h, fmt.Errorf("record of unknown kind %d", h.kind)
	}
	switch {
	case h.raw < 1 || h.raw > limit:
		return h, fmt.Errorf("record of %d bytes; a valid one has 1 to %d", h.raw, limit)
	case h.gap < 0 || h.gap > maxGap:
		return h, fmt.Errorf("gap of %d bytes; the maximum is %d", h.gap, maxGap)
	case h.packed > maxPacked(h.raw):
		return h, fmt.Errorf("payload of %d bytes for %d", h.packed, h.raw)
	case h.packed < h.raw/maxRatio:
		return h, fmt.Errorf("payload of %d bytes expands to %d; the maximum is %d times", h.packed, h.raw, maxRatio)
	}
	return h, nil
}

// maxPacked is the maximum size of a payload: stored blocks with their headers. Blocks that a coder would enlarge are
// stored.
func maxPacked(raw int) int { return raw + raw/16 + 4096 }

// A head begins the container, so that a stream can be unpacked.
type head struct {
	Files []FileInfo `json:"files"`
	Base  []FileInfo `json:"base,omitempty"`
}

// A FileInfo is a file of the container.
type FileInfo struct {
	Name   string `json:"name"` // relative to the folder of the first file, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // in the head only of a base
}

// An Index is the last record: where every tensor is.
type Index struct {
	Files   []FileInfo    `json:"files"`
	Base    []FileInfo    `json:"base,omitempty"` // that differences are from
	Tensors []TensorInfo  `json:"tensors"`
	Chunks  []chunkRecord `json:"chunks"`
}

// A TensorInfo is a tensor with chunks of its own. Smaller ones are in the skeleton. What follows from the table of
// records is not repeated: the index is a part of small containers that counts.
type TensorInfo struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"`
	Size  int64   `json:"size"`
	Chunk int     `json:"chunk"` // number of its first record
	Codec string  `json:"codec"` // of its first record
}

// Packed is the number of bytes of the records of a tensor.
func (x *Index) Packed(t TensorInfo) (n int64) {
	for _, c := range x.Chunks[t.Chunk:][:(t.Size+maxChunk-1)/maxChunk] {
		n += int64(headerSize + c.packed)
	}
	return n
}

// A chunkRecord is a row of the table of records, in the order of the container.
type chunkRecord struct {
	kind             kind
	packed, raw, gap int
}

// MarshalJSON writes the row as [kind, packed, raw, gap].
func (c chunkRecord) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d,%d,%d]", c.kind, c.packed, c.raw, c.gap), nil
}

// UnmarshalJSON reads the row.
func (c *chunkRecord) UnmarshalJSON(b []byte) error {
	var v [4]int
	if err := bounded.JSON(b, &v); err != nil {
		return err
	}
	*c = chunkRecord{kind(v[0]), v[1], v[2], v[3]}
	return nil
}

// encodeJSON is v as a record.
func encodeJSON(k kind, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if k == indexRecord && len(text) > maxIndex || k == headRecord && len(text) > maxHead {
		return nil, errors.New("too many tensors and files for the index of a packed model")
	}
	var z bytes.Buffer
	w, err := zlib.NewWriterLevel(&z, zlib.BestCompression)
	if err == nil {
		_, err = w.Write(text)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return nil, err
	}
	h := header{kind: k, packed: z.Len(), raw: len(text), sum: checksum(text)}
	return append(h.append(nil), z.Bytes()...), nil
}

// decodeJSON reads the payload of a record of encodeJSON.
func decodeJSON(h header, payload []byte, v any) error {
	z, err := zlib.NewReader(bytes.NewReader(payload))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(z, int64(h.raw)+1))
	if err != nil {
		return err
	}
	if len(text) != h.raw || checksum(text) != h.sum {
		return errDigest
	}
	return bounded.JSON(text, v)
}

// errDigest is the error of content that was changed.
var errDigest = errors.New("the content does not match its digest")

// checkFiles rejects names that are not those of files below the folder of the model, and sizes that the container
// cannot have.
func checkFiles(files []FileInfo) error {
	if len(files) == 0 {
		return errors.New("no files")
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
		if f.Size < 0 {
			return fmt.Errorf("file %q has size %d", f.Name, f.Size)
		}
	}
	return untrusted.CheckNames(names)
}
