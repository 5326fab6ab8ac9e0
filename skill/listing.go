package skill

import "github.com/belay-run/belay/internal/listing"

// The tools, and the smallest default of a budget, in tokens.
const (
	ReadTool      = "read_skill"
	InvokeTool    = "invoke_skill"
	DefaultBudget = listing.Least
)

// ListingBudget returns the default budget of a listing, in tokens, for a model with a
// context window of so many tokens: 2 % of the window, and DefaultBudget at least. Zero
// means that the window is unknown.
func ListingBudget(window int) int { return listing.Budget(window) }

// Listing renders skills for a model, in the order given, within a budget of tokens of four
// characters: first the names of all, then descriptions, one after the other, while they
// fit. If not even the names fit, a comment says how many are left out. Hidden skills are
// not in it. The frame around the list is written even if the budget has no room for it.
func Listing(skills []*Skill, budget int) string {
	text, _ := list(skills, budget)
	return text
}

// list renders skills, and counts what does not fit.
func list(skills []*Skill, budget int) (string, listing.LeftOut) {
	var entries []listing.Entry
	for _, s := range skills {
		if !s.Hidden && !s.UserOnly {
			entries = append(entries, listing.Entry{Name: s.Name, Description: s.Description})
		}
	}
	return listing.Render("skill", entries, budget)
}

// ReadDescription returns the description of the tool that reads skills, with a
// listing and an optional text after it.
func ReadDescription(listing, suffix string) string {
	return withSuffix("Reads a skill: instructions for a kind of task, written for you. When a task fits one of the skills below, read it before you begin, and follow it. "+
		"A skill may have sections, which its text mentions: read those that you need.\n\n"+listing, suffix)
}

// InvokeDescription returns the description of the tool that calls computed skills,
// with a listing and an optional text after it.
func InvokeDescription(listing, suffix string) string {
	return withSuffix("Invokes a skill whose text is computed on demand. When a task fits one of the skills below, invoke it, pass the details it needs as args, and use its answer.\n\n"+listing, suffix)
}

func withSuffix(text, suffix string) string {
	if suffix == "" {
		return text
	}
	return text + "\n\n" + suffix
}
