package dialect

// Vendor is another coding agent.
type Vendor string

// The coding agents that Belay knows.
const (
	ClaudeCode Vendor = "claude-code"
	Codex      Vendor = "codex"
	GeminiCLI  Vendor = "gemini-cli"
	Cursor     Vendor = "cursor"
	Copilot    Vendor = "copilot"
)

// Vendors are the coding agents that Belay knows, in the order of the docs.
func Vendors() []Vendor { return []Vendor{ClaudeCode, Codex, GeminiCLI, Cursor, Copilot} }

// Title returns the name of the product, for texts.
func (v Vendor) Title() string {
	switch v {
	case ClaudeCode:
		return "Claude Code"
	case Codex:
		return "Codex"
	case GeminiCLI:
		return "Gemini CLI"
	case Cursor:
		return "Cursor"
	case Copilot:
		return "GitHub Copilot"
	default:
		return string(v)
	}
}
