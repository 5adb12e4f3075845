// A question with one line for the answer.

import { element } from "./element.ts";

export interface Question {
  title: string;
  hint: string;
  value: string;
  /** What is wrong with an answer; nothing when it will do. */
  fault?: (answer: string) => Promise<string | undefined>;
}

/** The answer; `undefined` when the question was closed without one. */
export function ask(parent: HTMLElement, { title, hint, value, fault }: Question): Promise<string | undefined> {
  const field = element("input", { type: "text", "aria-describedby": "ask-hint", value, spellcheck: "false" });
  const told = element("p", { id: "ask-hint", class: "quiet", "aria-live": "polite" }, hint);
  const close = element("button", { type: "button" }, "Cancel");
  const form = element("form", {}, element("label", {}, title, field), told, element("div", { class: "steps" }, element("button", { type: "submit" }, "OK"), close));
  const dialog = element("dialog", { class: "help ask", "aria-label": title }, form);
  parent.append(dialog);
  const focused = document.activeElement as HTMLElement | null;
  return new Promise((done) => {
    let answer: string | undefined;
    const take = async (text: string) => {
      const wrong = await fault?.(text);
      if (wrong) return void (told.textContent = wrong);
      answer = text;
      dialog.close();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void take(field.value.trim());
    });
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      focused?.focus({ preventScroll: true });
      done(answer);
    });
    dialog.showModal();
    field.select();
  });
}
