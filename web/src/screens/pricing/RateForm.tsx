import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { errorText, isProblem, query } from '../../api/client';
import { PROVIDER_OPTIONS, type Provider } from '../../app/providers';
import { Button } from '../../parts/forms/Button';
import { DateField } from '../../parts/forms/DateField';
import { Form, Select, TextField } from '../../parts/forms/Fields';
import { Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import type { Kind } from './OwnRates';
import css from './Prices.module.css';

const RATES = [
  ['input', 'Input'],
  ['output', 'Output'],
  ['cache_read', 'Cache read'],
  ['cache_write_5m', 'Cache write 5 min'],
  ['cache_write_1h', 'Cache write 1 h'],
  ['batch_multiplier', 'Batch ÷ standard'],
] as const;

type Rates = Partial<Record<(typeof RATES)[number][0], string>>;

/** Enters an override or a contract rate. Fields of the address fill it, so that other screens can ask for one. */
export function RateForm({ kind, onEnd }: { kind: Kind; onEnd: () => void }) {
  const isContract = kind === 'contract-rates';
  const [params] = useSearchParams();
  const client = useQueryClient();
  const toast = useToast();
  const [provider, setProvider] = useState<Provider>(
    PROVIDER_OPTIONS.find(({ value }) => value === params.get('provider'))?.value ?? 'openai',
  );
  const [model, setModel] = useState(params.get('model') ?? '');
  const [from, setFrom] = useState(params.get('from') ?? new Date().toISOString().slice(0, 10));
  const [to, setTo] = useState('');
  const [way, setWay] = useState<'discount' | 'rates'>(isContract ? 'discount' : 'rates');
  const [discount, setDiscount] = useState('');
  const [rates, setRates] = useState<Rates>({});
  const [document, setDocument] = useState('');
  const [clause, setClause] = useState('');
  const options = {
    onSuccess: async () => {
      toast('The price is entered. Stored calls keep theirs until they are priced again.');
      onEnd();
      await client.invalidateQueries({ queryKey: ['get', `/api/v1/pricing/${kind}`] });
    },
  };
  const override = query.useMutation('post', '/api/v1/pricing/overrides', options);
  const contract = query.useMutation('post', '/api/v1/pricing/contract-rates', options);
  const make = isContract ? contract : override;
  const faultOf = (field: string) =>
    isProblem(make.error)
      ? make.error.errors?.find((one) => one.field === field || one.field === `rates.${field}`)?.message
      : undefined;
  const submit = () => {
    const given = Object.fromEntries(
      Object.entries(rates)
        .map(([name, value]) => [name, value.trim()])
        .filter(([, value]) => value !== ''),
    );
    const base = { provider, model: model.trim(), effective_from: from, effective_to: to || null };
    const source = { document: document.trim(), clause: clause.trim() || null, url: null };
    if (isContract)
      contract.mutate({
        body: {
          ...base,
          source,
          ...(way === 'discount' ? { discount_percent: discount.trim() } : { rates: given }),
        },
      });
    else override.mutate({ body: { ...base, rates: given, source: source.document ? source : null } });
  };
  const isReady = model.trim() !== '' && from !== '' && (!isContract || document.trim() !== '');
  return (
    <Form
      onSubmit={submit}
      actions={
        <>
          <Button kind="primary" type="submit" isPending={make.isPending} isDisabled={!isReady}>
            {make.isPending ? 'Saving …' : 'Enter it'}
          </Button>
          <Button onPress={onEnd}>Cancel</Button>
        </>
      }
    >
      <div className={css.pair}>
        <Select label="Provider" value={provider} options={PROVIDER_OPTIONS} onChange={setProvider} />
        <TextField
          label="Model"
          value={model}
          onChange={setModel}
          help={isContract ? 'A model, an alias, a family, or * for all.' : 'A model, an alias, or a family.'}
          error={faultOf('model')}
        />
        <DateField label="First day (UTC)" value={from} onChange={setFrom} />
        <DateField label="First day without it (optional)" value={to} onChange={setTo} />
      </div>
      {isContract && (
        <Select
          label="Agreed"
          value={way}
          options={[
            { value: 'discount', label: 'A discount on every listed rate' },
            { value: 'rates', label: 'Rates in place of listed ones' },
          ]}
          onChange={setWay}
        />
      )}
      {way === 'discount' ? (
        <TextField
          label="Discount in percent"
          value={discount}
          onChange={setDiscount}
          error={faultOf('discount_percent')}
        />
      ) : (
        <div className={css.pair}>
          {RATES.map(([name, label]) => (
            <TextField
              key={name}
              label={label}
              value={rates[name] ?? ''}
              onChange={(value) => setRates({ ...rates, [name]: value })}
              placeholder="as listed"
              error={faultOf(name)}
            />
          ))}
        </div>
      )}
      <div className={css.pair}>
        <TextField
          label={isContract ? 'Document that proves it' : 'Document that proves it (optional)'}
          value={document}
          onChange={setDocument}
          error={faultOf('source.document') ?? faultOf('source')}
        />
        <TextField label="Clause (optional)" value={clause} onChange={setClause} />
      </div>
      {make.error && <Notice kind="bad">{errorText(make.error)}</Notice>}
    </Form>
  );
}
