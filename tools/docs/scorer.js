// What a page of the search results weighs. Pages that answer a question come before those that tell how iolab is made.
var Scorer = {
  score: ([page, title, anchor, , score]) => {
    const asked = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().split(/[^a-z0-9]+/).filter((word) => word.length > 1);
    const named = title.toLowerCase().split(/[^a-z0-9]+/);
    // In a title what is asked for stands alone, or in the plural.
    const hits = asked.filter((word) => named.some((other) => other === word || other === `${word}s`)).length;
    const weights = [
      [/^docs\/howto\/README|^README|^index/, 0],
      [/^docs\/(howto|start)\//, 20],
      [/^docs\/(reference|models)\//, 15],
      [/^docs\/format\//, 15],
      [/^reference\//, 15],
      [/^(CHANGELOG|CONTRIBUTING|ARCHITECTURE|docs\/design)/, -20],
    ];
    const weight = weights.find(([pattern]) => pattern.test(page));
    // A section of a page counts less than the page itself.
    return score + (10 * hits) / Math.max(asked.length, 1) + (weight ? weight[1] : 0) - (anchor ? 12 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
