(() => {
  const place = document.getElementById("chart");
  const drawn = JSON.parse(document.getElementById("figure").textContent);
  const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const themed = () => {
    const changes = {"font.color": color("--soft"), "hoverlabel.bgcolor": color("--card"), "hoverlabel.bordercolor": color("--line"),
      "hoverlabel.font.color": color("--ink")};
    for (const axis of Object.keys(drawn.layout).filter(key => /^[xy]axis/.test(key))) {
      changes[axis + ".gridcolor"] = color("--grid");
      changes[axis + ".linecolor"] = color("--line");
    }
    return changes;
  };
  const options = {responsive: true, displaylogo: false, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"]]};
  Plotly.newPlot(place, drawn.data, drawn.layout, options).then(() => Plotly.relayout(place, themed()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Plotly.relayout(place, themed()));
})();
