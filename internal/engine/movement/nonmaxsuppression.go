package movement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// nonMaxSuppression is NonMaxSuppression. The number of selected boxes is known after Run only.
func nonMaxSuppression() []op.Op {
	return []op.Op{{Type: "NonMaxSuppression", Since: 10, Run: runNonMaxSuppression}}
}

// A suppressor is the inputs and attributes of NonMaxSuppression.
type suppressor struct {
	boxes, scores *ir.Array // [batches,n,4] and [batches,classes,n]
	maxBoxes      int64     // maximum number of boxes per class
	iouThreshold  float32   // IoU threshold
	limited       bool      // by score
	score         float32
	centered      bool
}

func newSuppression(c *op.Call) (*suppressor, error) {
	s := &suppressor{centered: c.Bool("center_point_box", false), limited: c.Opt(4) != nil}
	var err error
	if s.boxes, err = floats(c, 0, "boxes"); err != nil {
		return nil, err
	}
	if s.scores, err = floats(c, 1, "scores"); err != nil {
		return nil, err
	}
	b, p := s.boxes.Shape, s.scores.Shape
	if len(b) != 3 || len(p) != 3 || b[2] != 4 || b[0] != p[0] || b[1] != p[2] {
		return nil, fmt.Errorf("boxes %s and scores %s do not match", s.boxes, s.scores)
	}
	if c.Opt(2) != nil {
		most, err := op.Tensor(c.In, 2, "max_output_boxes_per_class")
		if err != nil {
			return nil, err
		}
		if s.maxBoxes, err = scalar([]*ir.Array{most}, 0, "max_output_boxes_per_class"); err != nil {
			return nil, err
		}
	}
	if s.iouThreshold, err = threshold(c, 3, "iou_threshold"); err != nil {
		return nil, err
	}
	if s.iouThreshold < 0 || s.iouThreshold > 1 {
		return nil, fmt.Errorf("iou_threshold is %v, want 0 to 1", s.iouThreshold)
	}
	s.score, err = threshold(c, 4, "score_threshold")
	return s, err
}

func floats(c *op.Call, i int, name string) (*ir.Array, error) {
	a, err := op.Tensor(c.In, i, name)
	if err == nil && a.DType != ir.Float {
		err = fmt.Errorf("%s is %s, want float", name, a)
	}
	return a, err
}

// threshold is input i, one float, or 0.
func threshold(c *op.Call, i int, name string) (float32, error) {
	if c.Opt(i) == nil {
		return 0, nil
	}
	a, err := floats(c, i, name)
	if err != nil {
		return 0, err
	}
	if a.Elems() != 1 {
		return 0, fmt.Errorf("%s is %s, want one number", name, a)
	}
	return ir.View[float32](a)[0], nil
}

func runNonMaxSuppression(c *op.Call) error {
	s, err := newSuppression(c)
	if err != nil {
		return err
	}
	if s.scores.Elems() == 0 {
		_, err := c.Make(0, ir.Int64, 0, 3)
		return err
	}
	batches, classes, n := s.scores.Shape[0], s.scores.Shape[1], s.scores.Shape[2]
	selected := make([][]int64, batches*classes)
	all, scores := ir.View[float32](s.boxes), ir.View[float32](s.scores)
	c.Pool.For(len(selected), func(i int) {
		batch := int64(i) / classes
		selected[i] = s.choose(all[batch*n*4:(batch+1)*n*4], scores[int64(i)*n:int64(i+1)*n])
	})
	var rows []int64
	for i, list := range selected {
		for _, box := range list {
			rows = append(rows, int64(i)/classes, int64(i)%classes, box)
		}
	}
	c.Out[0] = ir.ArrayOf(rows, int64(len(rows)/3), 3)
	return nil
}

// choose returns the selected boxes of one class, ordered by descending score and then by index.
func (s *suppressor) choose(boxes, scores []float32) []int64 {
	order := make([]int, 0, len(scores))
	for i, score := range scores {
		if !s.limited || score > s.score {
			order = append(order, i)
		}
	}
	// Stable: equal scores stay in the order of their indices.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	var selected []int64
	var corners []rectangle
	for _, i := range order {
		if int64(len(selected)) >= s.maxBoxes {
			break
		}
		r := s.rectangle(boxes[4*i : 4*i+4])
		// Greedy, as specified: a box is compared with the selected ones only, not with suppressed ones.
		if !slices.ContainsFunc(corners, func(k rectangle) bool { return k.iou(r) > s.iouThreshold }) {
			selected, corners = append(selected, int64(i)), append(corners, r)
		}
	}
	return selected
}

// A rectangle has its corners in order.
type rectangle struct{ y1, x1, y2, x2 float32 }

func (s *suppressor) rectangle(b []float32) rectangle {
	if s.centered {
		x, y, w, h := b[0], b[1], b[2]/2, b[3]/2
		return rectangle{y - h, x - w, y + h, x + w}
	}
	return rectangle{min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3])}
}

// iou is the intersection over union (IoU); 0 for empty ones.
func (r rectangle) iou(o rectangle) float32 {
	shared := rectangle{max(r.y1, o.y1), max(r.x1, o.x1), min(r.y2, o.y2), min(r.x2, o.x2)}
	if shared.y2 <= shared.y1 || shared.x2 <= shared.x1 {
		return 0
	}
	both := shared.area()
	return both / (r.area() + o.area() - both)
}

// area is rounded explicitly, so that no platform fuses the product with a sum.
func (r rectangle) area() float32 { return float32((r.y2 - r.y1) * (r.x2 - r.x1)) }
