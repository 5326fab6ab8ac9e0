package skill_test

import (
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/belay-run/belay/skill"
)

// SPEC K-09
func TestDetect(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		files map[string]string
		want  string // language / framework
	}{
		{"nothing", map[string]string{"README.md": "Go and Django"}, "/"},
		{"Go", map[string]string{"go.mod": "module x\n\ngo 1.26\n"}, "Go/"},
		{"Gin", map[string]string{"go.mod": "module x\n\nrequire github.com/gin-gonic/gin v1.10.0\n"}, "Go/Gin"},
		{"a major version", map[string]string{"go.mod": "module x\nrequire (\n\tgithub.com/labstack/echo/v4 v4.1.0 // indirect\n)\n"}, "Go/Echo"},
		{"Go with a web page", map[string]string{"go.mod": "module x\n", "package.json": `{"dependencies":{"react":"19"}}`}, "Go/"},
		{"Rust", map[string]string{"Cargo.toml": "[package]\nname = \"axum-clone\"\n"}, "Rust/"},
		{"Axum", map[string]string{"Cargo.toml": "[dependencies]\naxum = \"0.8\"\n"}, "Rust/Axum"},
		{"JavaScript", map[string]string{"package.json": `{"name":"next"}`}, "JavaScript/"},
		{"Next.js before React", map[string]string{"package.json": `{"dependencies":{"react":"19","next":"16"}}`, "tsconfig.json": "{}"}, "TypeScript/Next.js"},
		{"React", map[string]string{"package.json": `{"dependencies":{"react":"19"}}`}, "JavaScript/React"},
		{"Vue", map[string]string{"package.json": `{"devDependencies":{"vue":"3"}}`}, "JavaScript/Vue"},
		{"SvelteKit before Svelte", map[string]string{"package.json": `{"devDependencies":{"svelte":"5","@sveltejs/kit":"2"}}`}, "JavaScript/SvelteKit"},
		{"Svelte", map[string]string{"package.json": `{"devDependencies":{"svelte":"5"}}`}, "JavaScript/Svelte"},
		{"Angular", map[string]string{"package.json": `{"dependencies":{"@angular/core":"20"}}`, "tsconfig.json": "{}"}, "TypeScript/Angular"},
		{"a file that is no JSON", map[string]string{"package.json": `{"dependencies":`}, "JavaScript/"},
		{"Django", map[string]string{"requirements.txt": "# flask\nDjango>=5\n"}, "Python/Django"},
		{"Flask", map[string]string{"requirements.txt": "flask[async]==3\nflaskr\n"}, "Python/Flask"},
		{"a name that holds another", map[string]string{"requirements.txt": "my-flask==1\nflaskr\npytest-django==4\n"}, "Python/"},
		{"FastAPI in a list", map[string]string{"pyproject.toml": "[project]\ndependencies = [\"fastapi>=0.110\", \"uvicorn\"]\n"}, "Python/FastAPI"},
		{"a project with requirements beside it", map[string]string{"pyproject.toml": "[tool.black]\n", "requirements.txt": "flask\n"}, "Python/Flask"},
		{"Rails", map[string]string{"Gemfile": "source \"https://example.org\"\ngem \"rails\", \"~> 8.0\"\n"}, "Ruby/Rails"},
		{"a gem of Rails", map[string]string{"Gemfile": "gem \"rails-i18n\"\n"}, "Ruby/"},
		{"Spring Boot with Maven", map[string]string{"pom.xml": "<dependency><artifactId>spring-boot-starter-web</artifactId></dependency>"}, "Java/Spring Boot"},
		{"Spring Boot with Gradle", map[string]string{"build.gradle": "plugins { id 'org.springframework.boot' version '4.0.0' }\n"}, "Java/Spring Boot"},
		{"Kotlin with Gradle", map[string]string{"build.gradle": "plugins { }\n", "src/main/kotlin/App.kt": ""}, "Kotlin/"},
		{"Ktor", map[string]string{"build.gradle.kts": "implementation(\"io.ktor:ktor-server-core\")\n"}, "Kotlin/Ktor"},
		{"Laravel", map[string]string{"composer.json": `{"require":{"php":"^8","laravel/framework":"^12"}}`}, "PHP/Laravel"},
		{"ASP.NET", map[string]string{"App.csproj": `<Project Sdk="Microsoft.NET.Sdk.Web"></Project>`}, "C#/ASP.NET Core"},
		{"C#", map[string]string{"App.sln": ""}, "C#/"},
		{"Phoenix", map[string]string{"mix.exs": "{:phoenix, \"~> 1.8\"}, {:phoenix_html, \"4\"}"}, "Elixir/Phoenix"},
		{"Flutter", map[string]string{"pubspec.yaml": "dependencies:\n  flutter:\n    sdk: flutter\n"}, "Dart/Flutter"},
		{"C++", map[string]string{"CMakeLists.txt": "project(x)\n"}, "C++/"},
		{"a directory with the name of a file", map[string]string{"go.mod/x": ""}, "/"},
		{"TypeScript alone", map[string]string{"tsconfig.json": "{}"}, "TypeScript/"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			for _, name := range slices.Sorted(maps.Keys(test.files)) {
				files[name] = &fstest.MapFile{Data: []byte(test.files[name])}
			}
			language, framework := skill.Detect(files)
			if got := language + "/" + framework; got != test.want {
				t.Errorf("Detect = %s, want %s", got, test.want)
			}
		})
	}
}
