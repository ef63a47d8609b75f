() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const parsed = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  // WCAG 2.2: relative luminance, and the ratio of two of them.
  const luminance = ([red, green, blue]) => {
    const linear = (part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parsed(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const left_out = '.hidden, .skip, .inside, button:disabled, script, style, noscript, option';
  const found = new Set();
  for (const node of document.querySelectorAll('body *')) {
    const speaks = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
    if (!speaks || !node.checkVisibility() || node.closest(left_out)) continue;
    const style = getComputedStyle(node);
    const ink = parsed(node instanceof SVGElement ? style.fill : style.color);
    const [low, high] = [luminance(ink), luminance(behind(node))].sort((one, other) => one - other);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) found.add(`${node.tagName}.${node.getAttribute('class')} ${ink}: ${ratio.toFixed(2)}`);
  }
  return [...found];
}
