package main

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

// barDelay is the time after which a progress bar is shown.
const barDelay = 300 * time.Millisecond

// A progress shows on a terminal how much of one model's output is written.
type progress struct {
	w     io.Writer
	name  string
	began time.Time

	mu   sync.Mutex
	area *mpb.Progress
	bar  *mpb.Bar

	training *atomic.Pointer[pass.Progress] // the last step; nil while nothing is trained
}

// newProgress returns nil, which shows nothing, unless stderr is a terminal.
func (t *tool) newProgress(model string) *progress {
	if t.quiet || t.json || !isTerminal(t.stderr) {
		return nil
	}
	return &progress{w: t.stderr.Unwrap(), name: mcli.Escape(mcli.BaseName(model)), began: time.Now()}
}

// show reports the bytes written so far and their total. It may be called from several goroutines.
func (p *progress) show(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		if time.Since(p.began) < barDelay {
			return
		}
		p.start(total)
	}
	p.bar.SetCurrent(done)
}

func (p *progress) start(total int64) {
	p.area = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(40))
	p.bar = p.area.AddBar(total,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(p.name+" ")),
		mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f "), decor.Percentage()),
	)
}

// trained shows the progress of training: steps, the last loss, time, throughput and the remaining time.
func (p *progress) trained(now pass.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Done {
		p.remove() // writing has a bar of its own
		return
	}
	if p.bar == nil || p.training == nil {
		p.training = &atomic.Pointer[pass.Progress]{}
		p.training.Store(&now)
		p.area = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(40))
		p.bar = p.area.AddBar(int64(now.Steps),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.name+" ")),
			mpb.AppendDecorators(
				decor.CountersNoUnit("step %d of %d"),
				decor.Any(func(decor.Statistics) string { return mcli.TrainingRate(*p.training.Load()) }),
				decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO), decor.Name(" left"),
			),
		)
	}
	p.training.Store(&now)
	p.bar.SetCurrent(int64(now.Step))
}

// searched shows the progress of a search in runs of the model.
func (p *progress) searched(done, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		p.area = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(40))
		p.bar = p.area.AddBar(int64(all),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.name+" ")),
			mpb.AppendDecorators(decor.CountersNoUnit("run %d of %d"), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO), decor.Name(" left")),
		)
	}
	p.bar.SetTotal(int64(all)+1, false)
	p.bar.SetCurrent(int64(done))
}

// stop removes the bar.
func (p *progress) stop() {
	if p != nil {
		p.remove()
	}
}

func (p *progress) remove() {
	if p.bar == nil {
		return
	}
	p.bar.Abort(true)
	p.area.Wait()
	p.bar, p.training = nil, nil
}

// progressBars show the progress of requests: lines of JSON of a list, or a bar for each stage of a model.
type progressBars struct {
	*tool
	stream *mcli.Stream // nil for bars

	mu   sync.Mutex
	bars map[string]*progress // of stages of models
}

// show is called from several goroutines.
func (b *progressBars) show(p mcompress.Progress) {
	if b.stream != nil {
		switch {
		case p.Training != nil:
			b.stream.Trained(p.Model)(*p.Training)
		case p.Stage == mcompress.StageWrite && !p.Ended:
			b.stream.Written(p.Model)(p.Done, p.Total)
		}
		return
	}
	bar := b.bar(p)
	switch {
	case bar == nil:
	case p.Training != nil:
		bar.trained(*p.Training)
	case p.Ended:
		bar.stop()
	case p.Stage == mcompress.StageSearch:
		bar.searched(int(p.Done), int(p.Total))
	default:
		bar.show(p.Done, p.Total)
	}
}

// bar is that of a stage of a model; nil for none.
func (b *progressBars) bar(p mcompress.Progress) *progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := p.Stage + " " + p.Model
	bar := b.bars[key]
	if bar == nil {
		if bar = b.newProgress(p.Model); bar == nil {
			return nil
		}
		if b.bars == nil {
			b.bars = map[string]*progress{}
		}
		b.bars[key] = bar
	}
	if p.Ended {
		delete(b.bars, key)
	}
	return bar
}
