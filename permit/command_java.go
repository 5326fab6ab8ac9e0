package permit

import "strings"

func javaCommands(t table) {
	t.add("java", javaCommand)
	compile := builder("compiles the project", "*- d=> h=> s=> cp= classpath= sourcepath= processorpath= J!")
	t.add("javac javap javadoc jdeps kotlinc scalac groovyc", func(c *invoked) {
		c.optionFiles()
		compile(c)
	})
	t.add("jar", func(c *invoked) {
		c.known(c.args)
		c.optionFiles()
		c.zone(ZoneWorkspace, "")
		c.touchAll(c.args)
	})
	t.add("mvn mvnw mvnd", mavenCommand)
	t.add("gradle gradlew", gradleCommand)
}

func javaCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "+*-cp= classpath= class-path= p= module-path= m=. module=. jar=. add-opens= add-exports= add-modules= add-reads= upgrade-module-path= d= describe-module= source= version showversion help")
	for _, a := range c.args {
		if strings.HasPrefix(a.text, "-javaagent") || strings.HasPrefix(a.text, "-agent") || strings.HasPrefix(a.text, "-XX:On") || strings.HasPrefix(a.text, "-XX:VMOptionsFile") ||
			strings.HasPrefix(a.text, "-XX:Flags") || strings.HasPrefix(a.text, "@") {
			c.unknown("java may load or run other code because of " + shown(a.text))
		}
	}
	if o.has("version", "showversion", "help") && len(o.rest) == 0 {
		return
	}
	c.zone(ZoneBuild, "runs code of the project")
	c.known(o.rest)
	for _, jar := range o.values("jar") {
		c.code(jar)
	}
	for _, paths := range o.values("cp", "classpath", "class-path", "p", "module-path") {
		for p := range strings.SplitSeq(paths.text, ":") {
			c.mayTouch(literal(p))
		}
	}
	if strings.HasSuffix(word(o.rest, 0), ".java") {
		c.code(o.rest[0])
	}
	c.touchAll(o.rest)
}

func mavenCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* f=< file=< s=< settings=< gs=< global-settings=< t=< toolchains=< l=> log-file=> D= define= P= activate-profiles= pl= projects= T= threads= rf= resume-from= b= builder=")
	c.zone(ZoneBuild, "builds or runs the project")
	c.javaRoute(o.values("D", "define"))
	for _, goal := range o.rest {
		switch plugin, _, _ := strings.Cut(goal.text, ":"); {
		case goal.text == "deploy" || plugin == "release" || strings.HasSuffix(goal.text, ":deploy") || strings.HasSuffix(goal.text, "deploy-file"):
			c.publishes("publishes")
		case plugin == "dependency" || plugin == "versions" || strings.HasSuffix(goal.text, "site-deploy"):
			c.installs()
		case plugin == "exec" || plugin == "antrun" || plugin == "groovy":
			c.unknown("runs a program")
		case strings.Contains(plugin, "."):
			c.unknown("fetches a plugin and runs it")
		}
	}
}

// javaRoute records Java properties that name another registry or a proxy.
func (c *invoked) javaRoute(properties []arg) {
	for _, p := range properties {
		name, value, _ := strings.Cut(p.text, "=")
		if strings.Contains(strings.ToLower(name), "proxyhost") || strings.Contains(value, "://") {
			c.through(arg{text: value, known: p.known})
		}
	}
}

func gradleCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* b=< build-file=< c=< settings-file=< p= project-dir= I=< init-script=< g=> gradle-user-home=> x= exclude-task= D= P= include-build=< project-cache-dir=> tests= "+
		"system-prop= project-prop= max-workers= console=")
	c.zone(ZoneBuild, "builds or runs the project")
	c.javaRoute(o.values("D", "P", "system-prop", "project-prop"))
	for _, dir := range o.values("p", "project-dir") {
		c.code(dir)
	}
	for _, task := range o.rest {
		name := strings.ToLower(task.text[strings.LastIndex(task.text, ":")+1:])
		if strings.HasPrefix(name, "publish") && name != "publishtomavenlocal" || strings.HasPrefix(name, "upload") || strings.HasPrefix(name, "deploy") || strings.HasPrefix(name, "release") {
			c.publishes("publishes")
		}
	}
}
