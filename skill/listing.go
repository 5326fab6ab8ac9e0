package skill

import "github.com/belay-run/belay/internal/listing"

// The default names of the tools, and the smallest default budget in tokens.
const (
	ReadTool      = "read_skill"
	InvokeTool    = "invoke_skill"
	DefaultBudget = listing.Least
)

// ListingBudget returns the default budget of a listing in tokens. window is the model's
// context window in tokens. The budget is 2 % of the window, but at least DefaultBudget.
// A window of 0 means unknown.
func ListingBudget(window int) int { return listing.Budget(window) }

// Listing renders skills for a model, in the given order. The budget is in tokens of four
// characters. Listing first writes all names, and then adds descriptions one after the
// other while they fit. If the names do not fit, a comment says how many are left out.
// Hidden skills and skills that only users may use are not listed. The frame around the
// list is always written, even if the budget is too small for it.
func Listing(skills []*Skill, budget int) string {
	text, _ := list(skills, budget)
	return text
}

// list renders the skills that the model may read, and counts the entries that did not fit.
func list(skills []*Skill, budget int) (string, listing.LeftOut) {
	var entries []listing.Entry
	for _, s := range skills {
		if !s.Hidden && !s.UserOnly {
			entries = append(entries, listing.Entry{Name: s.Name, Description: s.Description})
		}
	}
	return listing.Render("skill", entries, budget)
}

// ReadDescription returns the description of the tool that reads skills. The listing is
// followed by the suffix, which may be empty.
func ReadDescription(listing, suffix string) string {
	return withSuffix("Reads a skill: instructions for a kind of task, written for you. When a task fits one of the skills below, read it before you begin, and follow it. "+
		"A skill may have sections, which its text mentions: read those that you need.\n\n"+listing, suffix)
}

// InvokeDescription returns the description of the tool that calls computed skills. The
// listing is followed by the suffix, which may be empty.
func InvokeDescription(listing, suffix string) string {
	return withSuffix("Invokes a skill whose text is computed on demand. When a task fits one of the skills below, invoke it, pass the details it needs as args, and use its answer.\n\n"+listing, suffix)
}

func withSuffix(text, suffix string) string {
	if suffix == "" {
		return text
	}
	return text + "\n\n" + suffix
}
