/** Lines of the bills that are not for tokens: fees for tools, credits, surcharges. */
import type { ExtraLine } from '../bills/ledger.js';
import { dayOf } from '../support/days.js';
import type { Random } from '../support/random.js';
import type { Window } from './booking.js';
import type { Plan } from './plan.js';

const PICO_PER_CENT = 10_000_000_000n;
const FEE_LABELS: Record<string, string> = { openai: 'web search tool calls', anthropic: 'Web Search Usage' };

export function extraLines(plan: Plan, window: Window, random: Random): ExtraLine[] {
  const accounts = [...new Set(plan.series.map((one) => `${one.provider}|${one.accountId}`))];
  const lines: ExtraLine[] = [];
  for (const account of accounts) {
    const [provider = '', accountId = ''] = account.split('|');
    lines.push(
      ...fees(provider, accountId, window, random),
      ...credits(plan, provider, accountId, window, random),
    );
  }
  for (const { mistake, startSeconds, endSeconds } of plan.mistakes)
    lines.push(
      ...(mistake.extras?.(dayOf(startSeconds), Math.min(window.lastDay, dayOf(endSeconds - 1))) ?? []),
    );
  return lines;
}

function fees(provider: string, accountId: string, window: Window, random: Random): ExtraLine[] {
  const label = FEE_LABELS[provider];
  const lines: ExtraLine[] = [];
  if (label === undefined || random.chance(0.4)) return lines;
  for (let day = window.firstDay; day <= window.lastDay; day += 1)
    lines.push({
      provider,
      accountId,
      day,
      label,
      kind: 'fee',
      project: null,
      pico: BigInt(random.whole(5, 400)) * PICO_PER_CENT,
    });
  return lines;
}

/** Of all bills only OpenAI's costs are known to list credits among the lines. */
function credits(
  plan: Plan,
  provider: string,
  accountId: string,
  window: Window,
  random: Random,
): ExtraLine[] {
  if (provider !== 'openai') return [];
  const { perAccount, hasLostSign } = plan.recipe.credits;
  return Array.from({ length: perAccount }, () => {
    const pico = BigInt(random.whole(5, 60) * 100) * PICO_PER_CENT;
    return {
      provider,
      accountId,
      day: random.whole(window.firstDay, window.lastDay - 3),
      label: 'Promotional credit',
      kind: 'credit' as const,
      project: null,
      pico: hasLostSign ? pico : -pico,
    };
  });
}
