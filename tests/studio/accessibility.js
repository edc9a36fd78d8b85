() => {
  // What a script can find of what keeps people from using a page: too little contrast, fields, pictures and links
  // without a name, headings out of order. Returns what is wrong, in words.
  const wrong = [];
  const seen = (node) => { const box = node.getBoundingClientRect(); const style = getComputedStyle(node); return box.width > 0 && box.height > 0 && style.visibility !== "hidden" && style.opacity !== "0"; };
  const parse = (text) => { const found = text.match(/[\d.]+/g).map(Number); return found.length > 3 ? found : [...found, 1]; };
  const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
  function ground(node) {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  }
  const light = (colour) => { const [r, g, b] = colour.map((v) => { const s = v / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + 0.05) / (low + 0.05); };

  for (const node of document.querySelectorAll("body *")) {
    if (node.closest("svg, script, noscript") || !seen(node)) continue;
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || node.classList.contains("unseen")) continue;
    const style = getComputedStyle(node), size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const background = ground(node), found = ratio(over(parse(style.color), background), background);
    if (found < needed) wrong.push(`contrast ${found.toFixed(2)} of "${node.textContent.trim().slice(0, 30)}"`);
  }
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    const named = field.labels && field.labels.length && [...field.labels].some((label) => label.textContent.trim());
    if (seen(field) && !named && !field.getAttribute("aria-label")) wrong.push(`no label: ${field.name || field.id}`);
  }
  for (const picture of document.querySelectorAll("svg")) {
    // an icon within a link, a button or a label that has a name of its own says nothing more
    const owner = picture.closest("a, button, label, [role=button]");
    const named = owner && (owner.textContent.trim() || owner.getAttribute("aria-label") || owner.title);
    const hidden = picture.getAttribute("aria-hidden") === "true" || named;
    if (!hidden && !(picture.getAttribute("role") === "img" && picture.getAttribute("aria-label"))) wrong.push("a picture without a name");
  }
  for (const picture of document.querySelectorAll("img")) {
    if (!picture.hasAttribute("alt")) wrong.push(`a picture without words: ${picture.getAttribute("src")}`);
  }
  for (const link of document.querySelectorAll("a, button")) {
    if (!link.textContent.trim() && !link.getAttribute("aria-label") && !link.title) wrong.push("a link without a name");
  }
  if (!document.documentElement.lang) wrong.push("no language");
  if (!document.title) wrong.push("no title");
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one first heading");
  let last = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    const level = Number(heading.tagName[1]);
    if (level > last + 1) wrong.push(`heading out of order: ${heading.textContent}`);
    last = level;
  }
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  if (new Set(ids).size !== ids.length) wrong.push("an id twice");
  return wrong;
}
