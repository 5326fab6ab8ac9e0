package providertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/probetest"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// stream makes a model from a function.
type stream func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error]

func (s stream) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return s(ctx, req)
}

// sound returns a model without faults.
func sound(_ testing.TB, server providertest.Server) belay.Model {
	return anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: server.URL(), Key: server.Key(), Provider: "anthropic"})
}

// asking returns a function that breaks a model: change is applied to each request.
func asking(change func(req *belay.Request)) func(belay.Model) belay.Model {
	return func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			copied := *req
			copied.Messages = nil
			for _, message := range req.Messages {
				var c belay.Message
				data, err := json.Marshal(message)
				if err != nil || json.Unmarshal(data, &c) != nil {
					panic("a message cannot be copied")
				}
				copied.Messages = append(copied.Messages, &c)
			}
			change(&copied)
			return m.Stream(ctx, &copied)
		})
	}
}

// parts is like asking, but applies change to every part of every message.
func parts(change func(p *belay.Part)) func(belay.Model) belay.Model {
	return asking(func(req *belay.Request) {
		for _, m := range req.Messages {
			for i := range m.Parts {
				change(&m.Parts[i])
			}
		}
	})
}

// telling returns a function that breaks a model: change is applied to each chunk.
func telling(change func(c belay.Chunk, err error) (belay.Chunk, error)) func(belay.Model) belay.Model {
	return func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			return func(yield func(belay.Chunk, error) bool) {
				for c, err := range m.Stream(ctx, req) {
					if !yield(change(c, err)) {
						return
					}
				}
			}
		})
	}
}

// responding applies change to each response.
func responding(change func(r *belay.Response)) func(belay.Model) belay.Model {
	return telling(func(c belay.Chunk, err error) (belay.Chunk, error) {
		if c.Response != nil {
			change(c.Response)
		}
		return c, err
	})
}

// failing applies change to each error.
func failing(change func(e *belay.ModelError)) func(belay.Model) belay.Model {
	return telling(func(c belay.Chunk, err error) (belay.Chunk, error) {
		if e := (*belay.ModelError)(nil); errors.As(err, &e) {
			change(e)
		}
		return c, err
	})
}

// calls applies change to each call in a response.
func calls(change func(c *belay.CallPart)) func(belay.Model) belay.Model {
	return responding(func(r *belay.Response) {
		for _, p := range r.Parts {
			if p.Call != nil {
				change(p.Call)
			}
		}
	})
}

// pouring returns a model that reads the response in a goroutine that cannot be stopped.
func pouring(m belay.Model) belay.Model {
	return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
		return func(yield func(belay.Chunk, error) bool) {
			type item struct {
				chunk belay.Chunk
				err   error
			}
			items := make(chan item)
			go func() { // ends only when everything is read: the rules must find this
				defer close(items)
				for c, err := range m.Stream(context.WithoutCancel(ctx), req) {
					items <- item{c, err}
				}
			}()
			for i := range items {
				if !yield(i.chunk, i.err) {
					// End the goroutine later, so that only the rule reports it.
					time.AfterFunc(5*impatience, func() {
						for range items {
							continue
						}
					})
					return
				}
			}
		}
	})
}

// impatience is how long the rules wait for broken models.
const impatience = 300 * time.Millisecond

// faults are broken models, each with the rules that must find the fault.
var faults = []fault{
	{"tells all at the end", telling(func(c belay.Chunk, err error) (belay.Chunk, error) {
		return belay.Chunk{Response: c.Response}, err
	}), []string{"text arrives in pieces, and then complete", "the input of parallel calls arrives in pieces that name their call", "a slow stream is passed on as it arrives", "cancelling a slow stream ends the request"}},
	{"sends the response twice", func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			return func(yield func(belay.Chunk, error) bool) {
				for c, err := range m.Stream(ctx, req) {
					if !yield(c, err) || c.Response != nil && !yield(c, nil) {
						return
					}
				}
			}
		})
	}, []string{"only the last chunk contains the response"}},
	{"keeps signs of life to itself", func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			return func(yield func(belay.Chunk, error) bool) {
				for c, err := range m.Stream(ctx, req) {
					if (c != belay.Chunk{} || err != nil) && !yield(c, err) {
						return
					}
				}
			}
		})
	}, []string{"a ping is an empty chunk"}},
	{"puts calls first", responding(func(r *belay.Response) {
		slices.SortStableFunc(r.Parts, func(a, b belay.Part) int { return len(b.Type) - len(a.Type) })
	}), []string{"thinking, text and calls keep their order", "text between calls keeps its place"}},
	{"ignores settings", asking(func(req *belay.Request) { req.Settings = belay.Settings{} }), []string{
		"a setting is sent as the protocol has it, or refused before anything is sent", "a setting that no service accepts is refused before anything is sent",
		"extra fields are added to the request", "requests with different settings do not share what is kept",
	}},
	{"leaves a missing input missing", calls(func(c *belay.CallPart) {
		if string(c.Input) == "{}" {
			c.Input = nil
		}
	}), []string{"a call without input has an empty object"}},
	{"keeps empty text", responding(func(r *belay.Response) { r.Parts = append([]belay.Part{belay.Text("")}, r.Parts...) }), []string{"empty text is dropped and not sent back"}},
	{"knows ASCII only", responding(func(r *belay.Response) {
		for i := range r.Parts {
			r.Parts[i].Text = strings.Map(func(c rune) rune { return c & 0x7f }, r.Parts[i].Text)
		}
	}), []string{"characters are intact wherever the stream is split"}},
	{"cuts long inputs", calls(func(c *belay.CallPart) {
		if len(c.Input) > 1<<20 {
			c.Input = json.RawMessage("{}")
		}
	}), []string{"an input of a megabyte arrives and is sent back"}},
	{"hides what is malformed", calls(func(c *belay.CallPart) { c.Malformed = "" }), []string{"a call that is cut off by the token limit is malformed", "an input that is JSON but not an object is malformed"}},
	{"knows one stop reason", responding(func(r *belay.Response) { r.StopReason = belay.StopEnd }), []string{"a refusal is a response", "a response that is cut off by the token limit has that stop reason"}},
	{"counts no cached tokens", responding(func(r *belay.Response) { r.Usage.CacheRead, r.Usage.CacheWrite = 0, 0 }), []string{"tokens are counted, and tokens read from a cache separately", "tokens written to a cache are counted separately"}},
	{"does not bear an empty response", telling(func(c belay.Chunk, err error) (belay.Chunk, error) {
		if c.Response != nil && len(c.Response.Parts) == 0 {
			return belay.Chunk{}, errors.New("empty")
		}
		return c, err
	}), []string{"an empty response is not a failure"}},

	{"sends no system prompt", asking(func(req *belay.Request) { req.System = "" }), []string{"system prompt, tools and token limit are sent as declared"}},
	{"sends a system prompt of its own", asking(func(req *belay.Request) { req.System += "Be nice." }), []string{"a request may have no system prompt and no tools"}},
	{"wants schemas", asking(func(req *belay.Request) {
		req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(t belay.ToolDeclaration) bool { return t.InputSchema == nil })
	}), []string{"a tool without a schema is declared too"}},
	{"forgets reminders", asking(func(req *belay.Request) {
		req.Messages = slices.DeleteFunc(req.Messages, func(m *belay.Message) bool { return m.Parts[0].IsReminder })
	}), []string{"consecutive messages of one role are joined"}},
	{"takes errors for results", parts(func(p *belay.Part) {
		if p.Result != nil {
			p.Result.IsError = false
		}
	}), []string{"results and errors of parallel calls reach the model", "an error without a text is still an error"}},
	{"does not look at images of tools", parts(func(p *belay.Part) {
		if p.Result != nil {
			p.Result.Media = nil
		}
	}), []string{"images of the user and of tools reach the model"}},
	{"shows no image that is called by a wrong type", parts(func(p *belay.Part) {
		if p.Media != nil && p.Media.MIME != "image/png" {
			p.Media.MIME = "image/x-unheard-of"
			p.Media.Data = []byte("?")
		}
	}), []string{"an image gets its real type, whatever type the tool declares"}},
	{"shows no errors", parts(func(p *belay.Part) {
		if p.Result != nil && p.Result.IsError {
			p.Result.Media = nil
		}
	}), []string{"an error with an image is still an error"}},
	{"drops inputs with escapes", parts(func(p *belay.Part) {
		if p.Call != nil && strings.Contains(string(p.Call.Input), `\u`) {
			p.Call.Input = json.RawMessage(`{}`)
		}
	}), []string{"half a character in an input is not sent back"}},
	{"sends every file as an image", parts(func(p *belay.Part) {
		if p.Media != nil && p.Media.Name != "" {
			p.Media.MIME, p.Media.Data, p.Media.URL = "image/png", nil, "nowhere"
		}
	}), []string{"a file that the service does not accept is not a failure"}},
	{"sends what is for people", parts(func(p *belay.Part) {
		if p.Result != nil {
			p.Result.Text += string(p.Result.Render)
		}
	}), []string{"rendered text, final inputs and typed text are not sent"}},
	{"changes the request", func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			req.Messages[0].Parts[0].Text += "!"
			return m.Stream(ctx, req)
		})
	}, []string{"the provider does not change the request"}},
	{"is for one at a time", func(m belay.Model) belay.Model {
		var busy sync.Mutex
		var asked atomic.Int64
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			return func(yield func(belay.Chunk, error) bool) {
				if asked.Add(1) > 1 && busy.TryLock() {
					yield(belay.Chunk{}, errors.New("busy"))
					return
				}
				m.Stream(ctx, req)(yield)
			}
		})
	}, []string{"concurrent requests can share messages"}},

	{"forgets signatures", parts(func(p *belay.Part) { p.Opaque = nil }), []string{"thinking is sent back unchanged", "encrypted thinking is sent back"}},
	{"improves its thinking", parts(func(p *belay.Part) {
		if p.Type == belay.PartThinking {
			p.Text += "!"
		}
	}), []string{"thinking is sent back unchanged", "a strict server accepts a whole conversation"}},
	{"takes all thinking for its own", parts(func(p *belay.Part) {
		p.Provider = "anthropic"
		if p.Opaque == nil {
			p.Opaque = json.RawMessage(`{"signature":"made up"}`)
		}
	}), []string{"thinking of another provider is left out", "thinking that was cut off is left out"}},
	{"makes a call of thinking alone", asking(func(req *belay.Request) {
		for _, m := range req.Messages {
			if len(m.Parts) == 1 && m.Parts[0].Type == belay.PartThinking {
				m.Parts = append(m.Parts, belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: "c1", Tool: "look", Input: json.RawMessage(`{}`)}})
			}
		}
	}), []string{"the conversation can continue after a response that is only thinking"}},
	{"counts its requests in the prompt", func(m belay.Model) belay.Model {
		var n atomic.Int64
		return asking(func(req *belay.Request) { req.System += fmt.Sprint(n.Add(1)) })(m)
	}, []string{"consecutive requests extend each other byte for byte", "a retry sends the same bytes"}},
	{"says when a message was made", func(m belay.Model) belay.Model {
		var seen sync.Map
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			first := req.Messages[0]
			if _, ok := seen.LoadOrStore(first, true); !ok && len(req.Messages) > 1 {
				req = &belay.Request{System: req.System + "?", Tools: req.Tools, Messages: req.Messages}
			}
			return m.Stream(ctx, req)
		})
	}, []string{"a transcript that was stored and loaded is sent with the same bytes"}},

	{"blames the server", failing(func(e *belay.ModelError) { e.Kind = belay.ModelServer }), []string{
		"429 without Retry-After is rate limited", "an overloaded service is reported as overloaded", "401 and 403 are failures of authentication",
		"a request that does not fit the window is too long", "400 and 404 are invalid", "no answer is a failure of the network",
		"an error in the stream is a failure of its kind", "a connection that drops at any event is a failure of the network",
		"a stream that ends early at any event is a failure of the network",
	}},
	{"blames the network", failing(func(e *belay.ModelError) { e.Kind = belay.ModelNetwork }), []string{
		"500, 502 and 503 are failures of the server", "if nothing listens at a local address, the error names it and is not retryable",
		"a web page in place of a response is reported with its type and not retried",
	}},
	{"waits for nothing", failing(func(e *belay.ModelError) { e.RetryAfter = 0 }), []string{"429 with seconds says how long to wait", "429 with a date says how long to wait"}},
	{"goes back in time", failing(func(e *belay.ModelError) { e.RetryAfter -= time.Hour }), []string{"429 with a past date or an invalid value does not wait"}},
	{"tries again", func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			return func(yield func(belay.Chunk, error) bool) {
				for _, err := range m.Stream(ctx, req) {
					if err != nil {
						break
					}
				}
				m.Stream(ctx, req)(yield)
			}
		})
	}, []string{"a failed attempt is not retried"}},
	{"takes a broken response for a whole one", func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			return func(yield func(belay.Chunk, error) bool) {
				told := false
				for c, err := range m.Stream(ctx, req) {
					if err != nil && told {
						yield(belay.Chunk{Response: &belay.Response{}}, nil)
						return
					}
					told = true
					if !yield(c, err) {
						return
					}
				}
			}
		})
	}, []string{"a connection that drops at any event is a failure of the network", "a stream that ends early at any event is a failure of the network"}},

	{"does not listen to its context", func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			return m.Stream(context.WithoutCancel(ctx), req)
		})
	}, []string{"cancelling a slow stream ends the request", "cancelling between two events that are far apart ends the request", "cancelling before the answer begins ends the request", "a context that is done from the start sends nothing", "an exceeded deadline returns the context's error"}},
	{"reads on when it is left", pouring, []string{"leaving at the first chunk ends the request", "leaving in the middle of a burst ends the request"}},
	{"leaves a goroutine behind", func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			go func() { <-time.After(5 * impatience) }() // ends, but too late for the rule
			return m.Stream(ctx, req)
		})
	}, []string{"a response that was read to its end leaves no goroutine", "leaving at the first chunk ends the request"}},
	{"does not wait to be asked", func(m belay.Model) belay.Model {
		return stream(func(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
			for range m.Stream(ctx, req) {
				break
			}
			return m.Stream(ctx, req)
		})
	}, []string{"a sequence without a loop over it sends nothing"}},
}

// soundOpenAI returns a model without faults that uses the Responses protocol.
func soundOpenAI(_ testing.TB, server providertest.Server) belay.Model {
	return openai.New("m", &openai.Options{URL: server.URL(), Key: server.Key(), API: openai.Responses, Provider: "p"})
}

// unfit replaces characters that services do not accept in names.
var unfit = strings.NewReplacer(".", "_", "/", "_", " ", "_")

// swapFaults are models that cannot continue another provider's conversation, each with the
// rules that must find the fault.
var swapFaults = []fault{
	{"cuts ids off", parts(func(p *belay.Part) {
		if p.Call != nil {
			p.Call.ID = p.Call.ID[:min(len(p.Call.ID), 40)]
		}
		if p.Result != nil {
			p.Result.Call = p.Result.Call[:min(len(p.Result.Call), 40)]
		}
	}), []string{"calls of another provider are sent with their results"}},
	{"takes what others want back for its own", parts(func(p *belay.Part) {
		if p.Provider != "" {
			p.Provider = "p"
		}
	}), []string{"opaque data of another provider is not sent"}},
	{"does not translate names back", calls(func(c *belay.CallPart) { c.Tool = unfit.Replace(c.Tool) }), []string{"names of tools are translated in both directions, or rejected"}},
	{"lets names become the same", asking(func(req *belay.Request) {
		req.Tools = slices.Clone(req.Tools)
		for i := range req.Tools {
			req.Tools[i].Name = unfit.Replace(req.Tools[i].Name)
		}
	}), []string{"translated names of tools stay different"}},
	{"blames the server for schemas", failing(func(e *belay.ModelError) { e.Kind = belay.ModelServer }), []string{"schemas are translated, or rejected"}},
}

// fault is a broken model and the rules that must find the fault.
type fault struct {
	fault string
	model func(belay.Model) belay.Model
	rules []string
}

func TestRulesFindFaults(t *testing.T) {
	t.Parallel()
	// Another test checks the rule about the key.
	findFaults(t, providertest.AnthropicRules(impatience), faults, sound, "the key is in no error")
}

func TestSwapRulesFindFaults(t *testing.T) {
	t.Parallel()
	findFaults(t, providertest.SwapRules(impatience), swapFaults, soundOpenAI)
}

// findFaults runs the rules on broken models. For each fault its rules must fail. Every rule
// must find at least one fault, except the rules in elsewhere.
func findFaults(t *testing.T, rules []providertest.NamedRule, faults []fault, sound func(testing.TB, providertest.Server) belay.Model, elsewhere ...string) {
	t.Helper()
	checks := map[string]func(t testing.TB, open func(t testing.TB, server providertest.Server) belay.Model){}
	for _, r := range rules {
		checks[r.Name] = r.Check
	}
	found := map[string]bool{}
	for _, name := range elsewhere {
		found[name] = true
	}
	for _, f := range faults {
		for _, name := range f.rules {
			found[name] = true
			check, ok := checks[name]
			if !ok {
				t.Errorf("there is no rule %q", name)
				continue
			}
			t.Run(f.fault+"/"+name, func(t *testing.T) {
				t.Parallel()
				failures := probetest.Run(t, func(t testing.TB) {
					check(t, func(t testing.TB, server providertest.Server) belay.Model { return f.model(sound(t, server)) })
				}).Failures()
				if len(failures) == 0 {
					t.Errorf("the rule does not find that the model %s", f.fault)
				}
			})
		}
	}
	for name := range checks {
		if !found[name] {
			t.Errorf("no broken model shows that the rule %q can fail", name)
		}
	}
}

func TestRuleFindsTheKey(t *testing.T) {
	t.Parallel()
	for _, r := range providertest.AnthropicRules(impatience) {
		if r.Name != "the key is in no error" {
			continue
		}
		failures := probetest.Run(t, func(t testing.TB) {
			r.Check(t, func(t testing.TB, server providertest.Server) belay.Model {
				return failing(func(e *belay.ModelError) { e.Err = errors.New(server.Key()) })(sound(t, server))
			})
		}).Failures()
		if len(failures) == 0 {
			t.Error("the rule does not find the key in an error")
		}
		return
	}
	t.Error("there is no rule about the key")
}
