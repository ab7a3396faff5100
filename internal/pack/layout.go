package pack

import (
	"cmp"
	"io"
	"slices"
	"sync"

	"github.com/mcompress/mcompress/ir"
)

// A File is a file to be packed. Tensors are payloads in it, in any order.
type File struct {
	Name    string // relative to the folder of the first file, with slashes
	Size    int64
	R       io.ReaderAt
	Tensors []Tensor
}

// A Tensor is a payload in a file.
type Tensor struct {
	ir.Spec
	Offset int64
}

// minTensor is the size of the smallest tensor with chunks of its own.
const minTensor = 1 << 10

// A segment is a part of a file with one codec: a tensor, or a long stretch between tensors.
type segment struct {
	tensor *Tensor // nil between tensors
	file   int
	offset int64
	size   int64
	base   *stretch // of a tensor like this one, nil without

	once  sync.Once
	codec codec
	err   error
}

func (s *segment) dtype() ir.DType {
	if s.tensor == nil {
		return ir.Undefined
	}
	return s.tensor.DType
}

// A stretch is a range of a file.
type stretch struct {
	file   int
	offset int64
	size   int
}

// A task is a chunk to be written: a range of a segment, or short stretches for the skeleton.
type task struct {
	segment *segment // nil for a skeleton
	from    []stretch
	gap     int
}

// A planner divides files into chunks.
type planner struct {
	tasks    []*task
	skeleton *task // the last one
	used     int   // its bytes
}

// tasksOf are the chunks of files, in the order of the container.
func tasksOf(files []File) []*task {
	var p planner
	for i, f := range files {
		p.file(i, f)
	}
	return p.tasks
}

func (p *planner) file(i int, f File) {
	tensors := slices.Clone(f.Tensors)
	slices.SortStableFunc(tensors, func(a, b Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	end := int64(0)
	for _, t := range tensors {
		n := t.Bytes()
		if n < minTensor || t.Offset < end || n > f.Size-t.Offset {
			continue // small, or stored at the same place as another
		}
		gap := t.Offset - end
		if gap > maxGap {
			p.segment(&segment{file: i, offset: end, size: gap}, 0)
			gap = 0
		}
		p.segment(&segment{tensor: &t, file: i, offset: t.Offset, size: n}, int(gap))
		end = t.Offset + n
	}
	if end < f.Size {
		p.segment(&segment{file: i, offset: end, size: f.Size - end}, 0)
	}
}

// segment adds the chunks of s, after gap bytes of the skeleton.
func (p *planner) segment(s *segment, gap int) {
	if gap > 0 {
		if p.skeleton == nil || p.used+gap > maxChunk {
			p.skeleton, p.used = &task{}, 0
			p.tasks = append(p.tasks, p.skeleton)
		}
		p.skeleton.from = append(p.skeleton.from, stretch{s.file, s.offset - int64(gap), gap})
		p.used += gap
	}
	for off := int64(0); off < s.size; off += maxChunk {
		n := int(min(maxChunk, s.size-off))
		p.tasks = append(p.tasks, &task{segment: s, from: []stretch{{s.file, s.offset + off, n}}, gap: gap})
		gap = 0
	}
}
