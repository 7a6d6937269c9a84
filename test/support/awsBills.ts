/** A month of Bedrock as AWS bills it, served by a loopback Cost Explorer and written as a Cost and Usage Report. */
import type { AwsCharge, AwsTruth } from '../fakes/billing/costExplorer.js';

export const AWS_PAYER = '111122223333';
export const AWS_MEMBER = '444455556666';
export const AWS_KEYS = {
  access_key_id: 'AKIAIOSFODNN7LOOPBACK',
  secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYLOOPBACK',
} as const;

const EDITION = 'Claude Sonnet 4.6 (Amazon Bedrock Edition)';

/** A day's charges: usage of several kinds, a free hour, a correction, tax, a credit, a refund and a discount. */
export function chargesOf(day: string, at: number): AwsCharge[] {
  const bedrock = { day, service: 'Amazon Bedrock', account: AWS_PAYER, recordType: 'Usage' };
  return [
    {
      ...bedrock,
      usageType: 'USE1-NovaPro-input-tokens',
      cost: `1.2345678${at % 10}`,
      net: '1.1',
      quantity: '1543.209',
    },
    { ...bedrock, usageType: 'USE1-NovaPro-output-tokens', cost: '0.0000000321', quantity: '0.01' },
    {
      ...bedrock,
      account: AWS_MEMBER,
      usageType: 'USE1-NovaPro-input-tokens',
      cost: '2.5',
      quantity: '3125',
    },
    { ...bedrock, usageType: 'USE1-NovaLite-input-tokens', cost: '0', quantity: '50' },
    { ...bedrock, usageType: 'USE1-NovaPro-input-tokens-batch', cost: '-0.25', quantity: '-625' },
    { ...bedrock, usageType: 'USE1-Mystery-Thing', cost: '0.75', quantity: '3' },
    {
      ...bedrock,
      service: EDITION,
      usageType: 'USE1-MP:USE1_InputTokenCount-Units',
      cost: '3.3',
      quantity: '1',
      unit: 'Units',
    },
    { ...bedrock, recordType: 'Tax', usageType: '', cost: '0.31', quantity: '1' },
    { ...bedrock, recordType: 'Credit', usageType: 'USE1-NovaPro-input-tokens', cost: '-0.5', quantity: '0' },
    { ...bedrock, recordType: 'Refund', usageType: '', cost: '-0.1', quantity: '0' },
    { ...bedrock, recordType: 'EdpDiscount', usageType: '', cost: '-0.05', quantity: '0' },
    { ...bedrock, recordType: 'A record type of next year', usageType: '', cost: '0.07', quantity: '0' },
    {
      ...bedrock,
      service: 'Amazon Elastic Compute Cloud - Compute',
      usageType: 'BoxUsage',
      cost: '99',
      quantity: '24',
    },
  ];
}

export function awsTruth(days: readonly string[], finalBefore: string): AwsTruth {
  return {
    accessKeyId: AWS_KEYS.access_key_id,
    secretAccessKey: AWS_KEYS.secret_access_key,
    charges: days.flatMap((day, at) => chargesOf(day, at)),
    finalBefore,
  };
}

/** Bedrock's part of the charges by category, in pico-dollars: an independent sum. */
export function sumsOf(charges: readonly AwsCharge[]): Record<string, bigint> {
  const categories: Record<string, string> = {
    Tax: 'tax',
    Credit: 'credit',
    Refund: 'refund',
    EdpDiscount: 'adjustment',
    'A record type of next year': 'adjustment',
  };
  const sums: Record<string, bigint> = {};
  for (const { recordType, service, cost } of charges) {
    if (!service.includes('Bedrock')) continue;
    const category = categories[recordType] ?? (cost.startsWith('-') ? 'adjustment' : 'usage');
    sums[category] = (sums[category] ?? 0n) + picoOf(cost);
  }
  return sums;
}

function picoOf(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.replace('-', '').split('.');
  const magnitude = BigInt(whole) * 10n ** 12n + BigInt(fraction.padEnd(12, '0'));
  return decimal.startsWith('-') ? -magnitude : magnitude;
}

/** The charges as a Cost and Usage Report; its invoice is there once the bill is final. */
export function curOf(charges: readonly AwsCharge[], invoice: string): string {
  const header =
    'bill_invoice_id,bill_payer_account_id,line_item_usage_account_id,line_item_line_item_type,line_item_usage_start_date,line_item_usage_end_date,line_item_product_code,line_item_usage_type,line_item_usage_amount,line_item_currency_code,line_item_unblended_cost,line_item_net_unblended_cost,product_product_name,pricing_unit';
  const lines = charges.map(({ day, recordType, service, usageType, account, cost, net, quantity, unit }) =>
    [
      invoice,
      AWS_PAYER,
      account,
      recordType,
      `${day}T00:00:00Z`,
      `${day}T23:00:00Z`,
      service.startsWith('Amazon Bedrock')
        ? 'AmazonBedrock'
        : service.includes('Bedrock')
          ? 'x8k2'
          : 'AmazonEC2',
      usageType,
      quantity,
      'USD',
      cost,
      net ?? cost,
      `"${service}"`,
      unit ?? '1K tokens',
    ].join(','),
  );
  return `${[header, ...lines].join('\n')}\n`;
}
