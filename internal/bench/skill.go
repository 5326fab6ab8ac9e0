package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/skill"
)

// skillPromises are the promises about skills, and about finding /names in a text.
func skillPromises() []promise {
	return []promise{
		{"skill-match-of-naive-1000th", 1, matchAgainstNaive},
		{"skill-match-allocs", 0, matchAllocs},
		{"skill-load-10000", 2.5, inScratch(coldLoad)},
		{"skill-listing-10000-ms", 20, listing},
		{"directive-scan-100k", 3, scanText},
	}
}

// skillTask is a task of 400 bytes that matches no trigger.
var skillTask = (`I would like you to look at the payment service, which has been slow since yesterday. The dashboards show that most of the time goes into ` +
	`the data base, and the logs say that some requests fail after thirty seconds. Please find out which query it is, write down what you see, and propose ` +
	`a change that we can roll out tomorrow. Do not touch the configuration of the load balancer, and keep the tests as they are.`)[:400]

// manySkills returns skills with two typical regular expressions each.
func manySkills() []skill.Skill {
	random := rand.New(rand.NewPCG(1, 2))
	syllables := []string{"ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu"}
	word := func() string {
		var b strings.Builder
		for range 3 + random.IntN(2) {
			b.WriteString(syllables[random.IntN(len(syllables))])
		}
		return b.String()
	}
	skills := make([]skill.Skill, 10_000)
	for i := range skills {
		skills[i] = skill.Skill{
			Name: fmt.Sprintf("skill-%05d", i), Description: "Helps with " + word() + " and " + word() + ". Use it when somebody asks about them.", Body: "Do it well.",
			Triggers: []skill.Trigger{
				{Type: skill.Regex, Pattern: fmt.Sprintf(`\b(?:deploy|release|roll out)\s+(?:the\s+)?%s(?:-?%s)?\b`, word(), word())},
				{Type: skill.Regex, Pattern: fmt.Sprintf(`%s\s+.*(?:error|fails|%s)`, word(), word())},
			},
		}
	}
	return skills
}

// bestOf returns the shortest time of f in these rounds, in nanoseconds. Use it for slow
// functions, and ratio for fast ones.
func bestOf(rounds int, f func() error) (float64, error) {
	best := math.Inf(1)
	for range rounds {
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		best = min(best, float64(time.Since(start).Nanoseconds()))
	}
	return best, nil
}

// matchAgainstNaive returns the cost of matching a task with 10,000 skills, in thousandths
// of the cost of trying every expression.
func matchAgainstNaive() (float64, error) {
	skills := manySkills()
	catalog := skill.NewCatalog(ctx, skill.Values(skills...))
	var naive []*regexp.Regexp
	for i := range skills {
		for _, t := range skills[i].Triggers {
			naive = append(naive, regexp.MustCompile("(?i)"+t.Pattern))
		}
	}
	found := 0
	below, err := bestOf(3, func() error {
		for _, re := range naive {
			if re.MatchString(skillTask) {
				found++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if got := len(catalog.Match(skillTask, "main")); got != found {
		return 0, fmt.Errorf("%d skills match, and %d by the naive loop", got, found)
	}
	ours := math.Inf(1)
	for range rounds {
		ours = min(ours, perOp(func(n int) {
			for range n {
				catalog.Match(skillTask, "main")
			}
		}))
	}
	return 1000 * ours / below, nil
}

// matchAllocs returns the number of allocations for a task that matches nothing.
func matchAllocs() (float64, error) {
	catalog := skill.NewCatalog(ctx, skill.Values(manySkills()...))
	if catalog.Match(skillTask, "main") != nil {
		return 0, errors.New("the task matches something")
	}
	return allocs(func(n int) {
		for range n {
			catalog.Match(skillTask, "main")
		}
	}), nil
}

// inScratch returns a function that calls measure with a temporary directory.
func inScratch(measure func(dir string) (float64, error)) func() (float64, error) {
	return func() (figure float64, err error) {
		dir, err := os.MkdirTemp("", "belay-bench-")
		if err != nil {
			return 0, fmt.Errorf("scratch directory: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		return measure(dir)
	}
}

// coldLoad returns the cost of loading 10,000 skills divided by the cost of reading their
// files.
func coldLoad(dir string) (float64, error) {
	body := strings.Repeat("Take care to do it well, and in the order that is given here.\n", 40)
	var files []string
	for _, s := range manySkills() {
		file := filepath.Join(dir, s.Name, "SKILL.md")
		text := "---\nname: " + s.Name + "\ndescription: " + s.Description + "\nlicense: MIT\nmetadata:\n  author: example\n  version: \"1.0\"\n---\n\n" + body
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			return 0, err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return 0, err
		}
		files = append(files, file)
	}
	ours, below := math.Inf(1), math.Inf(1)
	for range 5 { // alternately, so that both have the same load on the machine
		read, err := bestOf(1, func() error {
			for _, file := range files {
				if _, err := os.ReadFile(file); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		load, err := bestOf(1, func() error {
			list, err := skill.Dir(dir).List(ctx)
			if err == nil && len(list) != len(files) {
				err = fmt.Errorf("%d skills were loaded of %d", len(list), len(files))
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		below, ours = min(below, read), min(ours, load)
	}
	return ours / below, nil
}

// listing returns the time to add one skill to 10,000 skills and to make the new list of
// skills, in milliseconds.
func listing() (float64, error) {
	catalog := skill.NewCatalog(ctx, skill.Values(manySkills()...))
	best := math.Inf(1)
	for range 10 {
		var lease *belay.Lease
		took, err := bestOf(1, func() (err error) {
			lease, err = catalog.Add(skill.Skill{Name: "new", Description: "Is new."})
			if err == nil && !strings.Contains(skill.Listing(catalog.List(), skill.DefaultBudget), `name="new"`) {
				err = errors.New("the new skill is not listed")
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		best = min(best, took)
		if err := lease.Close(); err != nil {
			return 0, err
		}
	}
	return best / 1e6, nil
}

// scanText returns the cost of scanning 100 KB without a token divided by the cost of
// counting its slashes.
func scanText() (float64, error) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, and then it rests for a while in the shade of an old tree. ", 10) + "See https://example.com/a for more. "
	text = strings.Repeat(text, 100_000/len(text)+1)[:100_000]
	if skill.Tokens(text) != nil {
		return 0, errors.New("the text has a token")
	}
	total := 0
	figure := ratio(func(n int) {
		for range n {
			total += len(skill.Tokens(text))
		}
	}, func(n int) {
		for range n {
			total += strings.Count(text, "/")
		}
	})
	if total == 0 {
		return 0, errors.New("the text has no slash")
	}
	return figure, nil
}
