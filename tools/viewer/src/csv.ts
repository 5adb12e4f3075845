// Comma-separated values, and handing them to the user.

/** A field as it stands in a line. */
export function field(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function lines(rows: Iterable<(string | number)[]>): string {
  return [...rows].map((row) => `${row.map(field).join(",")}\n`).join("");
}

/** Hands something to the user as a file. */
export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function saveText(name: string, text: string): void {
  save(name, new Blob([text], { type: "text/csv" }));
}
