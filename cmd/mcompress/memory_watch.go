package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/profile"
	"github.com/mcompress/mcompress/report"
)

// watchInterval is the time between two lines of --watch.
const watchInterval = time.Second

// watchTraining runs steps of a training in this process, discards the result, and prints the memory every second and at the end.
func (s *memoryFlags) watchTraining(ctx context.Context, t *tool, model string) error {
	batch := int64(0)
	if n := len(s.batches); n > 0 {
		batch = s.batches[n-1]
	}
	job := s.trainingJob(t, model, batch)
	tr, err := job.trainer()
	if err != nil {
		return err
	}
	r := profile.New()
	tr.Train.Recorder = r
	w := &watcher{tool: t, recorder: r}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := tr.Trial(ctx, job.Steps)
		ended <- err
	}()
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := w.line(false); err != nil {
				// The training removes its temporary files as it ends.
				cancel()
				<-ended
				return err
			}
		case err := <-ended:
			if err != nil {
				return withModel(model, err)
			}
			return w.line(true)
		}
	}
}

// A watcher prints the memory of a running training: on a terminal in one line that is updated, otherwise in one line each, as JSON with --json.
type watcher struct {
	*tool
	recorder *profile.Recorder
}

// line prints the memory now.
func (w *watcher) line(last bool) error {
	now, peak := report.Resident()
	live := watched{now, peak, w.recorder.Live()}
	if w.json {
		return json.NewEncoder(w.stdout).Encode(live)
	}
	text := mcli.LiveMemory(live.Live, live.Resident, live.Peak)
	if !isTerminal(w.stdout) {
		_, err := fmt.Fprintln(w.stdout, text)
		return err
	}
	end := ""
	if last {
		end = "\n"
	}
	_, err := fmt.Fprint(w.stdout.Unwrap(), "\r\x1b[K"+text+end)
	return err
}

// watched is one line of --watch as JSON.
type watched struct {
	Resident int64 `json:"resident_bytes"` // 0 if it is not known
	Peak     int64 `json:"peak_resident_bytes"`
	profile.Live
}
