package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/skill"
)

// Check applies the specification strictly, or also allows Belay's own fields.
func ExampleCheck() {
	dir := must(os.MkdirTemp("", "skills-"))
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Mkdir(filepath.Join(dir, "pdf"), 0o700); err != nil {
		panic(err)
	}
	text := "---\nname: PDF\ndescription: Extracts text.\npriority: 5\n---\nBody.\n"
	if err := os.WriteFile(filepath.Join(dir, "pdf", "SKILL.md"), []byte(text), 0o600); err != nil {
		panic(err)
	}
	for _, strict := range []bool{true, false} {
		fmt.Println("strict:", strict)
		for _, problem := range must(skill.Check(dir, strict)) {
			fmt.Println(filepath.ToSlash(strings.TrimPrefix(problem.Error(), dir+string(filepath.Separator))))
		}
	}
	// Output:
	// strict: true
	// pdf/SKILL.md:2: the name "PDF" may contain only lower-case letters, digits and single hyphens between them
	// pdf/SKILL.md:2: the name "PDF" must be the same as the name of the directory, "pdf"
	// pdf/SKILL.md:4: the field "priority" is an addition of Belay and not part of the specification
	// strict: false
	// pdf/SKILL.md:2: the name "PDF" may contain only lower-case letters, digits and single hyphens between them
	// pdf/SKILL.md:2: the name "PDF" must be the same as the name of the directory, "pdf"
}
