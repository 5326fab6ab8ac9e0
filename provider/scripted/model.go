package scripted

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/belay-run/belay"
)

// defaultKeep is the default of Options.Keep.
const defaultKeep = 1000

// Options are the settings of a model. The zero value is valid.
type Options struct {
	// Name has the form provider/name. Defaults to scripted/ and the name of the script's
	// file without its extension, or to scripted/script.
	Name string `yaml:"name"`
	// Window is the limit for a request, in tokens. Step.Usage says how tokens are
	// estimated. A longer request fails with ModelTooLong and uses no step. Defaults to no
	// limit.
	Window int `yaml:"window"`
	// MaxOutput and Price are part of the result of Info. They have no other effect.
	MaxOutput int         `yaml:"max_output"`
	Price     belay.Price `yaml:"price"`
	// Repeat plays the last step again for each request after the end of the script. By
	// default such requests fail with ModelInvalid.
	Repeat bool `yaml:"repeat"`
	// FollowTranscript chooses the step by the conversation: after n messages of the
	// assistant comes step n+1. So one model can serve many sessions, and continue a session
	// of another process. A failed attempt adds no message, so each retry gets the same
	// fault. By default each request gets the step after the previous request's step.
	FollowTranscript bool `yaml:"follow_transcript"`
	// Cache simulates a prompt cache. If a request begins like the previous request, the
	// usage counts this beginning as CacheRead. Cache affects only estimated usage.
	Cache bool `yaml:"cache"`
	// Keep is how many requests Model.Requests can return; negative means none. Defaults to
	// 1000.
	Keep int `yaml:"keep"`
	// Pace is the default for steps.
	Pace Pace `yaml:"pace"`
}

// Model is a [belay.InfoModel] that plays a script.
type Model struct {
	// These fields never change, so forks share them.
	options Options
	takes   []*take

	mu     sync.Mutex // guards the fields below
	played int        // number of the last step, counting repetitions
	record record
	before *belay.Request // the last request that got a step, for Options.Cache
}

var _ belay.InfoModel = (*Model)(nil)

// New returns a model that plays the steps. The options may be nil.
func New(steps []Step, options *Options) *Model {
	m := &Model{takes: make([]*take, len(steps))}
	if options != nil {
		m.options = *options
	}
	m.options.Name = cmp.Or(m.options.Name, "scripted/script")
	m.options.Keep = cmp.Or(m.options.Keep, defaultKeep)
	ids := &ids{prefix: "call_"}
	for i, step := range steps {
		m.takes[i] = m.ready(step, i+1, ids)
	}
	return m
}

func (m *Model) ready(step Step, number int, ids *ids) *take {
	step.Calls = slices.Clone(step.Calls)
	step.Pace = step.Pace.or(m.options.Pace)
	return ready(step, fmt.Sprintf("step %d", number), ids)
}

// Info returns the name, window, longest output and price from the options.
func (m *Model) Info() belay.ModelInfo {
	return belay.ModelInfo{Name: m.options.Name, Window: m.options.Window, MaxOutput: m.options.MaxOutput, Price: m.options.Price}
}

// Stream plays the next step. It takes the step when a loop over the sequence begins, so two
// loops over one sequence are two requests.
func (m *Model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) { m.play(ctx, req, yield) }
}

// Fork returns a model that plays the same script from the start and records its own
// requests. Use one model for each conversation.
func (m *Model) Fork() *Model { return &Model{options: m.options, takes: m.takes} }

// Rewind goes back to the first step and forgets all requests.
func (m *Model) Rewind() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.played, m.record, m.before = 0, record{}, nil
}

// Left returns the number of steps after the last played step. With FollowTranscript, the
// last played step is that of the conversation that is furthest in the script. A test can
// check that Left is 0 at the end.
func (m *Model) Left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, len(m.takes)-m.played)
}

// Requests returns at most Options.Keep requests, oldest first. Failed requests are included.
// The slices are copies; the messages are shared.
func (m *Model) Requests() []belay.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record.all()
}
