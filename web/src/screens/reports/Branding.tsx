import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, type components, errorText, isProblem, query } from '../../api/client';
import { useMay } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { Form, TextField } from '../../parts/forms/Fields';
import { FileDrop } from '../../parts/forms/FileDrop';
import { Card } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import css from './Branding.module.css';
import { Cover } from './Cover';
import { ReportsPage } from './ReportsPage';

type Branding = components['schemas']['Branding'];

const HEX = /^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i;

export default function BrandingScreen() {
  const branding = query.useQuery('get', '/api/v1/reports/branding', {});
  return (
    <ReportsPage>
      {branding.isPending ? (
        <Loading />
      ) : branding.error ? (
        <ErrorState error={branding.error} retry={() => void branding.refetch()} />
      ) : (
        <Editor stored={branding.data} />
      )}
    </ReportsPage>
  );
}

/** The fields beside the cover that they make. What was typed stays when the service refuses it. */
function Editor({ stored }: { stored: Branding }) {
  const mayWrite = useMay()({ scope: 'reports:write' });
  const client = useQueryClient();
  const toast = useToast();
  const [name, setName] = useState(stored.org_name);
  const [color, setColor] = useState(stored.brand_color);
  const [footer, setFooter] = useState(stored.footer_text);
  /** A new file, or null where the logo is to be removed; undefined: as stored. */
  const [logo, setLogo] = useState<File | null>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const preview = usePreview(logo);
  const logoUrl = logo === null ? '' : (preview ?? stored.logo_url);
  const hex = HEX.test(color.trim()) ? `#${color.trim().replace('#', '')}` : stored.brand_color;
  const fields = [
    ['org_name', stored.org_name, name],
    ['brand_color', stored.brand_color, color],
    ['footer_text', stored.footer_text, footer],
  ] as const;
  const isChanged = logo !== undefined || fields.some(([, before, now]) => now !== before);
  const save = async () => {
    setIsBusy(true);
    setError(undefined);
    const body = new FormData();
    // Fields that were not touched stay out: a default then follows the organization's name and address.
    for (const [field, before, now] of fields) if (now !== before) body.set(field, now.trim());
    if (logo !== undefined) body.set('logo', logo ?? '');
    try {
      const answer = await api.POST('/api/v1/reports/branding', {
        body: body as never,
        bodySerializer: (form) => form as unknown as FormData,
      });
      if (!answer.data) throw answer.error;
      setName(answer.data.org_name);
      setColor(answer.data.brand_color);
      setFooter(answer.data.footer_text);
      setLogo(undefined);
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/reports/branding'] });
      toast('Reports have the new cover from now on.');
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  const faultOf = (field: string) =>
    isProblem(error) ? error.errors?.find((one) => one.field === field)?.message : undefined;
  const logoFault =
    faultOf('logo') ?? (isProblem(error) && isAboutLogo(error.code) && logo ? error.detail : undefined);
  const isShown = logoFault ?? faultOf('org_name') ?? faultOf('brand_color') ?? faultOf('footer_text');
  const cover = <Cover logoUrl={logoUrl} color={hex} name={name} footer={footer} />;
  if (!mayWrite) return cover;
  return (
    <div className={css.columns}>
      <Card title="Branding">
        <Form
          onSubmit={() => void save()}
          actions={
            <Button kind="primary" type="submit" isPending={isBusy} isDisabled={!isChanged}>
              {isBusy ? 'Saving …' : 'Save'}
            </Button>
          }
        >
          <FileDrop
            label="Logo: PNG or SVG, at most 2 MB"
            accept={['image/png', 'image/svg+xml']}
            file={logo ?? undefined}
            onFile={(file) => {
              setLogo(file);
              setError(undefined);
            }}
          >
            {logoUrl && (
              <Button kind="quiet" onPress={() => setLogo(null)}>
                Remove the logo
              </Button>
            )}
          </FileDrop>
          {logoFault && <Notice kind="bad">The logo was refused: {logoFault}</Notice>}
          <div className={css.color}>
            <input
              type="color"
              className={css.picker}
              aria-label="Pick the colour"
              value={longHex(hex)}
              onChange={(event) => setColor(event.target.value.toUpperCase())}
            />
            <TextField
              label="Colour"
              value={color}
              onChange={setColor}
              placeholder="#1F4FD8"
              error={
                faultOf('brand_color') ??
                (color.trim() === '' || HEX.test(color.trim())
                  ? undefined
                  : 'Three or six hexadecimal digits, such as #0B6E4F.')
              }
            />
          </div>
          <TextField
            label="Name on the cover"
            value={name}
            onChange={setName}
            help="Empty: the organization's name."
            error={faultOf('org_name')}
          />
          <TextField
            label="Footer of each page"
            value={footer}
            onChange={setFooter}
            help="Empty: the name and the address of this service."
            error={faultOf('footer_text')}
          />
          {error !== undefined && !isShown && <Notice kind="bad">{errorText(error)}</Notice>}
        </Form>
      </Card>
      {cover}
    </div>
  );
}

const isAboutLogo = (code: string) =>
  code === 'invalid_logo' || code === 'payload_too_large' || code === 'unsupported_media_type';

/** `#abc` as `#aabbcc`, which the picker of browsers needs. */
const longHex = (hex: string) => (hex.length === 4 ? hex.replace(/[0-9a-f]/gi, '$&$&') : hex).toLowerCase();

/** An address of the chosen file for this page. */
function usePreview(file: File | null | undefined): string | undefined {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (!file) {
      setUrl(undefined);
      return;
    }
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return url;
}
