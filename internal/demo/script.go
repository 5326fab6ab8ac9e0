package demo

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

const prompt = "Tidy the changelog for release 1.2."

// window is the model's context window in tokens. It is small, so that Belay compacts the
// conversation during the tour.
const window = 8000

// script returns the model with its script. Each step expects the results of the previous
// step, so that a broken hook ends the tour with an error. A process that resumes the turn
// skips the steps that were already played. killed says whether a process is killed in the
// last call of the first process.
func script(played int, killed bool) *scripted.Model {
	reads := scripted.Call{Tool: "read", Input: `{"path": "docs/../CHANGELOG.md"}`}
	searches := scripted.Call{Tool: "search", Input: `{"text": "release"}`}
	steps := []scripted.Step{
		{
			Expect: &scripted.Expect{User: prompt, System: "Change at most 3 files.", Tools: []string{"read", "search", "write"}},
			Text:   "Let me look around.", Calls: []scripted.Call{reads, searches},
			Usage: belay.Usage{In: 1180, Out: 64},
		},
		{
			Expect: &scripted.Expect{Results: []scripted.Result{{Tool: "read", Text: "fixd the login"}, {Tool: "search", Text: "[REDACTED]"}}},
			Text:   "I put the tidy version where it is served.",
			Calls:  []scripted.Call{{Tool: "write", Input: writeInput{Path: "/srv/www/CHANGELOG.md", Text: "# 1.2\n\n- Fixed the login.\n"}}},
			Usage:  belay.Usage{In: 180, CacheRead: 1180, Out: 72},
		},
		{
			Expect: &scripted.Expect{Results: []scripted.Result{{Tool: "write", Text: "outside the project", IsError: true}}},
			Text:   "Not there, then. I write it in the project.",
			Calls:  []scripted.Call{{Tool: "write", Input: writeInput{Path: "CHANGELOG.md", Text: "# 1.2\n\n- Fixed the login.\n"}}},
			Usage:  belay.Usage{In: 150, CacheRead: 1360, Out: 70},
		},
		{
			Expect: &scripted.Expect{Results: []scripted.Result{{Tool: "write", Text: "26 bytes"}}, Reminders: []string{"a date behind each version"}},
			Text:   "The date is missing. I add it.",
			Calls:  []scripted.Call{{Tool: "write", Input: writeInput{Path: "CHANGELOG.md", Text: "# 1.2 (2026-03-02)\n\n- Fixed the login.\n"}}},
			Usage:  belay.Usage{In: 190, CacheRead: 1510, Out: 78},
		},
		{
			Expect: &scripted.Expect{Results: []scripted.Result{{Tool: "write", Text: "39 bytes"}}},
			Text:   "The changelog is tidy.",
			Usage:  belay.Usage{In: 4900, CacheRead: 1700, Out: 12}, // fills the context window
		},
		{
			Expect: &scripted.Expect{User: "Summarize"},
			Text:   "CHANGELOG.md is tidy, with a date. /srv/www is off limits.",
			Usage:  belay.Usage{In: 90, CacheRead: 6600, Out: 40},
		},
		{
			Expect: &scripted.Expect{Reminders: []string{"NEWS.md"}},
			Text:   "Right, the news.",
			Calls:  []scripted.Call{{Tool: "write", Input: writeInput{Path: news, Text: "1.2 is out.\n"}}},
			Usage:  belay.Usage{In: 860, Out: 44},
		},
	}
	if killed {
		steps = append(steps, scripted.Step{
			Expect: &scripted.Expect{Results: []scripted.Result{{Tool: "write", Text: "The process ended during", IsError: true}}},
			Text:   "I was interrupted. Let me see how far that came.",
			Calls:  []scripted.Call{{Tool: "read", Input: pathInput{news}}},
			Usage:  belay.Usage{In: 110, CacheRead: 860, Out: 31},
		}, scripted.Step{
			Expect: &scripted.Expect{Results: []scripted.Result{{Tool: "read", Text: "1.2 is out."}}},
			Text:   "It was written. CHANGELOG.md and NEWS.md are ready for release 1.2.",
			Usage:  belay.Usage{In: 60, CacheRead: 970, Out: 24},
		})
	} else {
		steps = append(steps, scripted.Step{
			Expect: &scripted.Expect{Results: []scripted.Result{{Tool: "write", Text: "12 bytes"}}},
			Text:   "CHANGELOG.md and NEWS.md are ready for release 1.2.",
			Usage:  belay.Usage{In: 60, CacheRead: 860, Out: 20},
		})
	}
	return scripted.New(steps[played:], &scripted.Options{
		Name: "scripted/demo", Window: window, Pace: scripted.Pace{Pause: 3 * time.Millisecond},
		Price: belay.Price{In: 3, Out: 15, CacheRead: 0.3, CacheWrite: 3.75},
	})
}
