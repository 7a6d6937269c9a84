/**
 * Generates a Cost and Usage Report of any size as chunks of bytes: the columns of CUR 2.0, hourly lines of many
 * services, some of them for Bedrock. A block of lines is made once and repeated with the days of the month, so
 * that making the file costs almost nothing compared with reading it.
 */
import { Random } from './random.js';

/** Columns of CUR 2.0 that such reports usually fill, and some that they leave empty. */
const COLUMNS =
  'bill_bill_type,bill_billing_entity,bill_billing_period_end_date,bill_billing_period_start_date,bill_invoice_id,bill_invoicing_entity,bill_payer_account_id,bill_payer_account_name,cost_category,discount,discount_bundled_discount,discount_total_discount,identity_line_item_id,identity_time_interval,line_item_availability_zone,line_item_blended_cost,line_item_blended_rate,line_item_currency_code,line_item_legal_entity,line_item_line_item_description,line_item_line_item_type,line_item_net_unblended_cost,line_item_net_unblended_rate,line_item_normalization_factor,line_item_normalized_usage_amount,line_item_operation,line_item_product_code,line_item_resource_id,line_item_tax_type,line_item_unblended_cost,line_item_unblended_rate,line_item_usage_account_id,line_item_usage_account_name,line_item_usage_amount,line_item_usage_end_date,line_item_usage_start_date,line_item_usage_type,pricing_currency,pricing_lease_contract_length,pricing_offering_class,pricing_public_on_demand_cost,pricing_public_on_demand_rate,pricing_purchase_option,pricing_rate_code,pricing_rate_id,pricing_term,pricing_unit,product,product_comment,product_fee_code,product_fee_description,product_from_location,product_from_location_type,product_from_region_code,product_instance_family,product_instance_type,product_instancesku,product_location,product_location_type,product_operation,product_pricing_unit,product_product_family,product_region_code,product_servicecode,product_sku,product_to_location,product_to_location_type,product_to_region_code,product_usagetype,reservation_amortized_upfront_cost_for_usage,reservation_amortized_upfront_fee_for_billing_period,reservation_availability_zone,reservation_effective_cost,reservation_end_time,reservation_modification_status,reservation_net_amortized_upfront_cost_for_usage,reservation_net_effective_cost,reservation_normalized_units_per_reservation,reservation_number_of_reservations,reservation_recurring_fee_for_usage,reservation_reservation_a_r_n,reservation_start_time,reservation_subscription_id,reservation_total_reserved_normalized_units,reservation_total_reserved_units,reservation_units_per_reservation,reservation_unused_amortized_upfront_fee_for_billing_period,reservation_unused_normalized_unit_quantity,reservation_unused_quantity,reservation_unused_recurring_fee,reservation_upfront_value,resource_tags,savings_plan_amortized_upfront_commitment_for_billing_period,savings_plan_end_time,savings_plan_instance_type_family,savings_plan_net_savings_plan_effective_cost,savings_plan_offering_type,savings_plan_payment_option,savings_plan_purchase_term,savings_plan_recurring_commitment_for_billing_period,savings_plan_region,savings_plan_savings_plan_a_r_n,savings_plan_savings_plan_effective_cost,savings_plan_savings_plan_rate,savings_plan_start_time,savings_plan_total_commitment_to_date,savings_plan_used_commitment'.split(
    ',',
  );
const MODELS = ['NovaPro', 'Nova2.0Lite', 'Claude4.6Sonnet', 'Claude3Haiku', 'gpt-oss-120b'];
const METERS = ['input-tokens', 'output-tokens', 'cache-read-input-token-count', 'input-tokens-batch'];
const BLOCK_LINES = 4_000;
const DAY_MARK = '2026-09-DD';
/** The place of the block's number in a line's id, which makes each line's id unique. */
const BLOCK_MARK = 'blockofid';

export interface CurFile {
  chunks(): AsyncGenerator<Buffer>;
  /** Filled while the chunks are made. */
  told: { lines: number; bedrockLines: number; bedrockPico: bigint; bytes: number };
}

/** A report of at least `bytes` bytes; `bedrockPercent` of its lines are for Bedrock. Equal seeds make equal files. */
export function curFile(options: { bytes: number; bedrockPercent: number; seed: number }): CurFile {
  const { lines, bedrockLines, bedrockPico } = block(options);
  const told = { lines: 0, bedrockLines: 0, bedrockPico: 0n, bytes: 0 };
  return {
    told,
    async *chunks() {
      const header = Buffer.from(`${COLUMNS.join(',')}\n`);
      told.bytes += header.length;
      yield header;
      for (let at = 0; told.bytes < options.bytes; at += 1) {
        const day = String(1 + (at % 30)).padStart(2, '0');
        const block = at.toString(36).padStart(BLOCK_MARK.length, '0');
        const bytes = Buffer.from(lines.replaceAll(DAY_MARK, `2026-09-${day}`).replaceAll(BLOCK_MARK, block));
        told.bytes += bytes.length;
        told.lines += BLOCK_LINES;
        told.bedrockLines += bedrockLines;
        told.bedrockPico += bedrockPico;
        yield bytes;
      }
    },
  };
}

function block({ bedrockPercent, seed }: { bedrockPercent: number; seed: number }) {
  const source = new Random(seed);
  const random = () => (source.next() >>> 0) / 2 ** 32;
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  let bedrockLines = 0;
  let bedrockPico = 0n;
  let lines = '';
  for (let at = 0; at < BLOCK_LINES; at += 1) {
    const isBedrock = random() * 100 < bedrockPercent;
    const hour = String(Math.floor(random() * 24)).padStart(2, '0');
    const tenths = BigInt(Math.floor(random() * 1e11));
    const cost = `${tenths / 10_000_000_000n}.${String(tenths % 10_000_000_000n).padStart(10, '0')}`;
    if (isBedrock) {
      bedrockLines += 1;
      bedrockPico += tenths * 100n;
    }
    const usageType = isBedrock
      ? `USE1-${pick(MODELS)}-${pick(METERS)}`
      : `USE1-${pick(['BoxUsage:m5.large', 'DataTransfer-Out-Bytes', 'TimedStorage-ByteHrs'])}`;
    lines += `${COLUMNS.map((column) => cellOf(column, { at, hour, cost, usageType, isBedrock, random })).join(',')}\n`;
  }
  return { lines, bedrockLines, bedrockPico };
}

interface Line {
  at: number;
  hour: string;
  cost: string;
  usageType: string;
  isBedrock: boolean;
  random: () => number;
}

function cellOf(column: string, { at, hour, cost, usageType, isBedrock, random }: Line): string {
  const code = isBedrock ? 'AmazonBedrock' : 'AmazonEC2';
  switch (column) {
    case 'bill_invoice_id':
      return '2026090001';
    case 'bill_payer_account_id':
      return '111122223333';
    case 'bill_billing_entity':
      return 'AWS';
    case 'bill_billing_period_start_date':
      return '2026-09-01T00:00:00.000Z';
    case 'bill_billing_period_end_date':
      return '2026-10-01T00:00:00.000Z';
    case 'identity_line_item_id':
      return Array.from({ length: 4 }, () =>
        Math.floor(random() * 2 ** 32)
          .toString(36)
          .padStart(7, 'x'),
      ).join(BLOCK_MARK);
    case 'identity_time_interval':
      return `${DAY_MARK}T${hour}:00:00Z/${DAY_MARK}T${hour}:59:59Z`;
    case 'line_item_usage_start_date':
      return `${DAY_MARK}T${hour}:00:00.000Z`;
    case 'line_item_usage_end_date':
      return `${DAY_MARK}T${hour}:59:59.000Z`;
    case 'line_item_line_item_type':
      return 'Usage';
    case 'line_item_line_item_description':
      return `"$0.0000600000 per 1K input tokens, ""${usageType}"""`;
    case 'line_item_product_code':
    case 'product_servicecode':
      return code;
    case 'line_item_legal_entity':
    case 'bill_invoicing_entity':
      return '"Amazon Web Services, Inc."';
    case 'line_item_resource_id':
      return isBedrock
        ? `arn:aws:bedrock:us-east-1:444455556666:inference-profile/${at % 97}`
        : `i-0${(at * 7_919).toString(16).padStart(16, '0')}`;
    case 'line_item_usage_account_id':
      return `44445555666${at % 7}`;
    case 'line_item_usage_type':
    case 'product_usagetype':
      return usageType;
    case 'line_item_usage_amount':
      return `${at % 977}.${at}`;
    case 'line_item_currency_code':
    case 'pricing_currency':
      return 'USD';
    case 'line_item_unblended_cost':
    case 'line_item_blended_cost':
    case 'line_item_net_unblended_cost':
    case 'pricing_public_on_demand_cost':
      return cost;
    case 'pricing_unit':
      return isBedrock ? '1K tokens' : 'Hrs';
    case 'pricing_rate_code':
      return 'W3AF2X7UY5B44HRV.JRTCKXETXF.6YS6EN2CT7';
    case 'product':
      return `"{""product_name"":""${isBedrock ? 'Amazon Bedrock' : 'Amazon Elastic Compute Cloud'}"",""region"":""us-east-1"",""servicename"":""${code}""}"`;
    case 'resource_tags':
      return `"{""user_team"":""team-${at % 13}"",""user_service"":""checkout""}"`;
    default:
      return '';
  }
}
