/**
 * At most `max` items of groups, one of each group in turn, so that no group is left out while another has several. The
 * items of a group are at even distances, and all are in the order in which they were given.
 */
export function takeInTurns<Item>(groups: readonly (readonly Item[])[], max: number): Item[] {
  const counts = groups.map(() => 0);
  let left = max;
  for (let turn = 1; left > 0; turn += 1) {
    const before = left;
    for (const [at, group] of groups.entries())
      if (left > 0 && group.length >= turn) {
        counts[at] = turn;
        left -= 1;
      }
    if (left === before) break;
  }
  return groups.flatMap((group, at) => evenly(group, counts[at] ?? 0));
}

function evenly<Item>(items: readonly Item[], count: number): Item[] {
  return Array.from({ length: count }, (_, at) => items[Math.floor((at * items.length) / count)] as Item);
}
