// Makes an element. Text always becomes text, never markup: names of files may hold anything.

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string>,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A button; its title tells what its text does not. */
export function button(text: string, title: string, act: () => void): HTMLButtonElement {
  const made = element("button", { type: "button", ...(title ? { title } : {}) }, text);
  made.addEventListener("click", act);
  return made;
}
