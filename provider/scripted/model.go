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

// defaultKeep is how many requests a model remembers.
const defaultKeep = 1000

// Options are the settings of a model. The zero value is valid.
type Options struct {
	// Name is provider/name. Defaults to scripted/script, or to the name of the
	// file that the script was read from.
	Name string `yaml:"name"`
	// Window is how many tokens a request may take, by the estimate that
	// Step.Usage describes. A longer one fails with ModelTooLong, and the script
	// stays where it is. Defaults to no limit.
	Window int `yaml:"window"`
	// Info returns MaxOutput and Price; they have no other effect.
	MaxOutput int         `yaml:"max_output"`
	Price     belay.Price `yaml:"price"`
	// Repeat plays the last step again for each later request. By default they
	// fail with ModelInvalid.
	Repeat bool `yaml:"repeat"`
	// FollowTranscript chooses the step by the conversation: after n messages of
	// the assistant comes step n+1. So one model can serve many sessions, and
	// continue a session of another process. A failed attempt adds no message, so
	// each retry gets the same fault. By default requests get one step after the
	// other.
	FollowTranscript bool `yaml:"follow_transcript"`
	// Cache counts the part that a request has in common with the beginning of
	// the previous one as read from a cache. It changes only estimated usage.
	Cache bool `yaml:"cache"`
	// Keep is how many requests are remembered; negative means none. Defaults to
	// the newest 1000.
	Keep int `yaml:"keep"`
	// Pace is the default pace of steps.
	Pace Pace `yaml:"pace"`
}

// Model is a [belay.InfoModel] that plays a script.
type Model struct {
	// Fork shares these; they never change.
	options Options
	takes   []*take

	mu     sync.Mutex // guards the rest
	played int        // steps, repetitions too
	record record
	before *belay.Request // the last request, for Cache
}

var _ belay.InfoModel = (*Model)(nil)

// New makes a model that plays steps.
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

// Info returns the description from the options.
func (m *Model) Info() belay.ModelInfo {
	return belay.ModelInfo{Name: m.options.Name, Window: m.options.Window, MaxOutput: m.options.MaxOutput, Price: m.options.Price}
}

// Stream plays the next step. The step is taken when the loop over the sequence
// begins, so two loops over one sequence are two requests.
func (m *Model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) { m.play(ctx, req, yield) }
}

// Fork makes a model that plays the same script from the start, with its own
// record of requests. Use one for each conversation.
func (m *Model) Fork() *Model { return &Model{options: m.options, takes: m.takes} }

// Rewind goes back to the start of the script, as if there had been no
// request.
func (m *Model) Rewind() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.played, m.record, m.before = 0, record{}, nil
}

// Left returns the number of steps after the last played one. With several
// conversations, the one that got furthest counts. If a test ends with steps
// left, it did not reach the end of its script.
func (m *Model) Left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, len(m.takes)-m.played)
}

// Requests returns the last requests, oldest first, including failed ones: at
// most Options.Keep. The slices are copies; the messages are shared.
func (m *Model) Requests() []belay.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record.all()
}
