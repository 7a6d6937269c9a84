/** Answers of AWS Cost Explorer (GetCostAndUsage) and of Azure Cost Management (query), and plain files. */
import { type Charge, dollars, groupBy } from '../books.js';
import { closesAt, textOfDay } from '../calendar.js';
import { METERS } from '../tariffs.js';

const AWS_METERS = [
  'input-tokens',
  'cache-read-input-token-count',
  'cache-write-input-token-count',
  'cache-write-input-token-count-1h',
  'output-tokens',
] as const;

function usageType({ tariff, model, meter, tier, isBatch }: Charge): string {
  const words = [
    'USE1',
    tariff.meterName,
    AWS_METERS[meter],
    ...(model.startsWith('global.') ? ['cross-region-global'] : []),
    ...(isBatch ? ['batch'] : []),
    ...(tier === 'standard' ? [] : [tier]),
  ];
  return words.join('-');
}

/** Usage by usage type and linked account. Quantities count thousands. */
export function costExplorerAnswer(charges: readonly Charge[], readAt: number): string {
  const days = groupBy(charges, ({ day }) => String(day)).map((ofDay) => {
    const { day } = ofDay[0] as Charge;
    const groups = groupBy(ofDay, (one) => `${usageType(one)} ${one.project}`).map((group) => {
      const [first] = group as [Charge, ...Charge[]];
      const amount = dollars(
        group.reduce((sum, { pico }) => sum + pico, 0n),
        10,
      );
      const tokens = group.reduce((sum, { count }) => sum + count, 0);
      return {
        Keys: [usageType(first), first.project],
        Metrics: {
          UnblendedCost: { Amount: amount, Unit: 'USD' },
          NetUnblendedCost: { Amount: amount, Unit: 'USD' },
          UsageQuantity: { Amount: (tokens / 1_000).toFixed(3), Unit: '1K tokens' },
        },
      };
    });
    return {
      TimePeriod: { Start: textOfDay(day), End: textOfDay(day + 1) },
      Total: {},
      Groups: groups,
      Estimated: readAt < closesAt('aws_bedrock', day),
    };
  });
  return JSON.stringify({
    GroupDefinitions: [
      { Type: 'DIMENSION', Key: 'USAGE_TYPE' },
      { Type: 'DIMENSION', Key: 'LINKED_ACCOUNT' },
    ],
    ResultsByTime: days,
    NextPageToken: null,
  });
}

const AZURE_NEW = ['inp', 'cd Inp', 'Cd Wr', 'Cd Wr', 'opt'] as const;
const AZURE_OLD = ['Inp', 'cached Inp', 'Cd Wr', 'Cd Wr', 'Outp'] as const;

/** Older models spell their meters otherwise and count thousands without stating it. */
function azureMeter({ tariff, meter, tier, isBatch, isElsewhere }: Charge): string {
  const isOld = tariff.meterName.startsWith('gpt');
  return [
    tariff.meterName,
    ...(tier === 'priority' ? ['pp'] : []),
    ...(isBatch ? ['Batch'] : []),
    (isOld ? AZURE_OLD : AZURE_NEW)[meter],
    isOld ? (isElsewhere ? 'dzone' : 'glbl') : isElsewhere ? 'DZ' : 'Gl',
    ...(isOld ? ['Tokens'] : ['1M Tokens']),
  ].join(' ');
}

/** Usage by meter and resource of one subscription, amounts as numbers with six decimals. */
export function costManagementAnswer(charges: readonly Charge[]): string {
  const rows = charges.map((one) => {
    const units = one.count / (one.tariff.meterName.startsWith('gpt') ? 1_000 : 1_000_000);
    const resource = `/subscriptions/${one.accountId}/resourceGroups/models/providers/Microsoft.CognitiveServices/accounts/${one.project}`;
    const date = Number(textOfDay(one.day).replaceAll('-', ''));
    return [Number(dollars(one.pico, 6)), units, date, azureMeter(one), resource, 'USD'];
  });
  const column = (name: string, type: string) => ({ name, type });
  return JSON.stringify({
    id: 'subscriptions/query',
    type: 'Microsoft.CostManagement/query',
    properties: {
      nextLink: null,
      columns: [
        column('Cost', 'Number'),
        column('UsageQuantity', 'Number'),
        column('UsageDate', 'Number'),
        column('Meter', 'String'),
        column('ResourceId', 'String'),
        column('Currency', 'String'),
      ],
      rows,
    },
  });
}

/**
 * A plain file: by model and class with quantities (`merged`) or without (`amounts`), or one amount for a model and
 * day (`totals`).
 */
export function plainFile(charges: readonly Charge[], grain: 'merged' | 'amounts' | 'totals'): string {
  const lines = groupBy(charges, ({ day, model, meter }) =>
    [day, model, grain === 'totals' ? '' : meter].join(' '),
  ).map((group) => {
    const [first] = group as [Charge, ...Charge[]];
    const quantity = group.reduce((sum, { count }) => sum + count, 0);
    return [
      textOfDay(first.day),
      first.model,
      grain === 'totals' ? 'other' : METERS[first.meter],
      grain === 'merged' ? quantity : '',
      dollars(
        group.reduce((sum, { pico }) => sum + pico, 0n),
        10,
      ),
    ].join(',');
  });
  return `date,model,token_class,quantity,amount_usd\n${lines.join('\n')}\n`;
}
