package pass

import (
	"testing"
	"time"
)

func TestBottleneck(t *testing.T) {
	const s = time.Second
	read, decode := Loading{Samples: 100, Bytes: 5e6, Read: 4 * s, Decode: 6 * s, Loaders: 2},
		Loading{Samples: 100, Read: 4 * s, Decode: 6 * s, Augment: 4 * s, Loaders: 2}
	for _, tt := range []struct {
		p    Progress
		want Bottleneck
	}{
		{Progress{}, ""},
		{Progress{Ran: 1, Wait: 9 * s, Compute: 91 * s, Loading: decode}, Steps},
		{Progress{Ran: 1, Wait: 10 * s, Compute: 90 * s, Loading: decode}, Loaders},
		{Progress{Ran: 1, Wait: 10 * s, Compute: 90 * s, Loading: read}, Reading},
	} {
		if got := tt.p.Bottleneck(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.p, got, tt.want)
		}
	}
	if read.SamplesPerSecond() != 25 || read.BytesPerSecond() != 1.25e6 || decode.SamplesPerSecond() != 20 ||
		(Loading{}).SamplesPerSecond() != 0 {
		t.Errorf("got %v samples/s, %v bytes/s, %v samples/s", read.SamplesPerSecond(), read.BytesPerSecond(),
			decode.SamplesPerSecond())
	}
	if sum := read.Add(decode).Since(read); sum != decode {
		t.Errorf("got %+v, want %+v", sum, decode)
	}
}
