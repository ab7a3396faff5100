package memory

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		line, err := NewTimeline(bs, 40)
		if err != nil {
			t.Fatal(err)
		}
		var peak int64
		var peaks []int
		for step := range 40 {
			var want Usage
			for _, b := range bs {
				if b.First <= step && step <= b.Last {
					want[b.Kind] += b.Bytes
				}
			}
			if line.Live[step] != want {
				t.Fatalf("step %d: got %v, want %v", step, line.Live[step], want)
			}
			var atStep int64
			for _, b := range line.At(step) {
				atStep += b.Bytes
			}
			if atStep != want.Total() {
				t.Fatalf("step %d: got %d bytes of blocks, want %d", step, atStep, want.Total())
			}
			if want.Total() > peak {
				peak, peaks = want.Total(), nil
			}
			if want.Total() == peak && peak > 0 {
				peaks = append(peaks, step)
			}
		}
		if line.Peak != peak || !slices.Equal(line.Peaks, peaks) {
			t.Fatalf("got a peak of %d at %v, want %d at %v", line.Peak, line.Peaks, peak, peaks)
		}
	})
}

func TestBlocksAtAStepComeLargestFirst(t *testing.T) {
	bs := []Block{
		{"weights", Weight, 50, 0, 2},
		{"x", Activation, 10, 0, 1},
		{"gone", Activation, 99, 0, 0},
		{"y", Activation, 70, 1, 2},
		{"work", Scratch, 10, 1, 1},
		{"empty", Activation, 0, 0, 2},
	}
	line, err := NewTimeline(bs, 3)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range line.At(1) {
		got = append(got, b.Name)
	}
	if want := []string{"y", "weights", "x", "work"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTimelineOfTooFewSteps(t *testing.T) {
	for _, steps := range []int{-1, 0, 3} {
		if line, err := NewTimeline([]Block{{"x", Activation, 1, 0, 3}}, steps); err == nil {
			t.Errorf("%d steps: got %+v, want an error", steps, line)
		}
	}
}
