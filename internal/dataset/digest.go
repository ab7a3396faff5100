package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Digest is the SHA-256, in hexadecimal, of all samples of s: of each input, label and recorded output the name, type, shape and
// elements of every sample in order. It does not depend on the file format. Filled inputs are not included. It reads all of s.
func (s *Set) Digest(ctx context.Context) (string, error) {
	sums := map[string]hash.Hash{}
	of := func(role, name string) hash.Hash {
		key := fmt.Sprintf("%s %q", role, name)
		if sums[key] == nil {
			sums[key] = sha256.New()
		}
		return sums[key]
	}
	size := s.Size(int(min(max(digestBytes/max(s.feed.bytes(1), 1), 1), int64(max(s.count, 1)))))
	for b, err := range s.Batches(ctx, Order{Size: size}) {
		if err != nil {
			return "", err
		}
		for name, a := range b.Inputs {
			if _, ok := s.opts.Fill[name]; ok {
				continue
			}
			addSamples(of("input", name), a, b.N)
		}
		for name, a := range b.Outputs {
			addSamples(of("output", name), a, b.N)
		}
		if b.Labels != nil {
			addSamples(of("labels", ""), b.Labels, b.N)
		}
	}
	all := sha256.New()
	fmt.Fprintf(all, "%d samples\n", s.count)
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(all, "%s %x\n", key, sums[key].Sum(nil))
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// digestBytes is the size of the batches that Digest reads.
const digestBytes = 1 << 20

// addSamples hashes the n samples of a one by one, each with its type and shape, so that the hash is independent of the batch size.
// The shape excludes the batch axis, also one of size 1: a batch of one equals a sample.
func addSamples(h hash.Hash, a *ir.Array, n int) {
	if a.Kind != ir.Dense || len(a.Shape) == 0 || a.Shape[0] != int64(n) {
		addValue(h, a)
		return
	}
	for i := range n {
		one := &ir.Array{DType: a.DType, Shape: a.Shape[1:]}
		if size := len(a.Data) / n; size > 0 {
			one.Data = a.Data[i*size:][:size]
		}
		if size := len(a.Text) / n; size > 0 {
			one.Text = a.Text[i*size:][:size]
		}
		addValue(h, one)
	}
}

// addValue hashes a value with length prefixes, so that different values write different bytes.
func addValue(h io.Writer, a *ir.Array) {
	fmt.Fprintf(h, "%d %s%v %d %d %d\n", a.Kind, a.DType, a.Shape, len(a.Data), len(a.Text), len(a.Items))
	h.Write(a.Data)
	for _, s := range a.Text {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
		io.WriteString(h, s)
	}
	for _, item := range a.Items {
		addValue(h, item)
	}
	if a.Keys != nil {
		addValue(h, a.Keys)
	}
}
