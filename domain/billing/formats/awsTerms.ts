import type { ChargeCategory } from '../billedRow.js';
import type { ParsedLabel } from '../grammars/parsedLabel.js';

/**
 * AWS's record types, which its Cost and Usage Report calls line item types and Cost Explorer the dimension RECORD_TYPE
 * (AWS Data Exports User Guide, "Line item columns"). The same word is written with and without spaces.
 */
export const AWS_RECORD_TYPES: Readonly<Record<ChargeCategory, readonly string[]>> = {
  usage: ['Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage'],
  tax: ['Tax'],
  credit: ['Credit'],
  refund: ['Refund'],
  purchase: ['Fee', 'RIFee', 'Recurring', 'Upfront', 'SavingsPlanUpfrontFee', 'SavingsPlanRecurringFee'],
  adjustment: [
    'Discount',
    'BundledDiscount',
    'EdpDiscount',
    'PrivateRateDiscount',
    'SppDiscount',
    'DistributorDiscount',
    'RiVolumeDiscount',
    'SavingsPlanNegation',
    'Enterprise Discount Program Discount',
    'Solution Provider Program Discount',
    'Other out-of-cycle charges',
    'Support',
    'Support fee',
  ],
};

const CATEGORY_OF = new Map<string, ChargeCategory>(
  Object.entries(AWS_RECORD_TYPES).flatMap(([category, types]) =>
    types.map((type): [string, ChargeCategory] => [compact(type), category as ChargeCategory]),
  ),
);

function compact(type: string): string {
  return type.replace(/[^a-z]/gi, '').toLowerCase();
}

/**
 * The category of a charge. A negative amount is never usage: netted into it, a day of use would look free. A type that
 * nobody knows is an adjustment: it belongs to the statement and to no call.
 */
export function awsCategory(recordType: string, amount: bigint): ChargeCategory {
  const category = CATEGORY_OF.get(compact(recordType)) ?? 'adjustment';
  return category === 'usage' && amount < 0n ? 'adjustment' : category;
}

const TOKENS_OF_UNIT: readonly [RegExp, bigint][] = [
  [/^(?:1m|1,?000,?000|million) ?(?:input |output )?tokens?$/i, 1_000_000n],
  [/^(?:1k|1,?000|thousand) ?(?:input |output )?tokens?$/i, 1_000n],
  [/^tokens?$/i, 1n],
];

/** Tokens of one unit: as the bill's unit says, else as the usage type does; undefined where neither counts tokens. */
export function awsUnitTokens(unit: string | undefined, label: ParsedLabel): bigint | undefined {
  if (!label.recognised || !label.observable) return undefined;
  const told = TOKENS_OF_UNIT.find(([pattern]) => pattern.test(unit ?? ''))?.[1];
  return told ?? label.unitTokens;
}

/** Whether a charge is of Amazon Bedrock: its own services, and models that a seller bills through the marketplace. */
export function isBedrockCharge(productCode: string, productName: string, usageType: string): boolean {
  return (
    /^AmazonBedrock/i.test(productCode) ||
    /\bBedrock\b/i.test(productName) ||
    /-MP:.*(?:TokenCount|_tokens(?:_|-))/.test(usageType)
  );
}
